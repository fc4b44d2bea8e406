# SPDX-License-Identifier: BSD-2-Clause
"""Which URLs and unix sockets a list of allowed sources covers.

The monitors have the same rules and enforce them (``monitor/internal/allowlist``); here they say beforehand what a
monitor would refuse. The tests of both read ``monitor/internal/allowlist/testdata/cases.json``. Parsed values are
compared, never texts. What can be read in two ways (a host that is a number, an encoded slash, a segment ``..``) is
refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import unquote_to_bytes

_SOCKET = "unix:"
_ORIGIN = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z_.-]+)(?::([1-9][0-9]{0,4}))?"
    r"(/[A-Za-z0-9._~!$&'()*+,=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?"
)
"""Narrower than RFC 3986: no user, no fragment, no empty port, no zone, only characters in which parsers agree."""
_LABEL = re.compile(r"[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that resolvers take for an IPv4 address, in one of several notations (inet_aton)."""
_AMBIGUOUS = re.compile(rb"[/\\%;\x00-\x1f\x7f]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_LONGEST_HOST, _LAST_PORT = 253, 65535
_PORTS = {"http": 80, "https": 443}


class SourceError(ValueError):
    """A source that cannot be allowed as it is written; the text says why."""


@dataclass(frozen=True)
class _Origin:
    scheme: str
    host: str
    port: int
    segments: tuple[bytes, ...] | None
    """Of the path, decoded; None: every path."""
    query: bool


@dataclass(frozen=True)
class AllowList:
    """A list of allowed sources; `parse` makes it. Without entries it allows nothing."""

    origins: tuple[_Origin, ...] = ()
    sockets: frozenset[str] = frozenset()

    def allows_url(self, text: str) -> bool:
        """Whether facts may be fetched from a URL."""
        try:
            wanted = _parse_origin(text)
        except SourceError:
            return False
        return any(_covers(allowed, wanted) for allowed in self.origins)

    def allows_socket(self, path: str) -> bool:
        """Whether a unix socket may be connected to."""
        return _is_socket(path) and path in self.sockets


def parse(entries: tuple[str, ...]) -> AllowList:
    """Read a list; SourceError names the first entry that is none."""
    origins, sockets = [], set()
    for entry in entries:
        if "$(" in entry:
            raise SourceError(f"{entry!r} has a variable; write the source itself")
        if entry.startswith(_SOCKET):
            path = entry.removeprefix(_SOCKET)
            if not _is_socket(path):
                raise SourceError(f"{entry!r}: the path is not absolute, or has empty segments, . or ..")
            sockets.add(path)
            continue
        try:
            allowed = _parse_origin(entry)
        except SourceError as error:
            raise SourceError(f"{entry!r}: {error}") from None
        if allowed.query:
            raise SourceError(f"{entry!r}: it has a query, which is not compared")
        origins.append(allowed)
    return AllowList(tuple(origins), frozenset(sockets))


def _is_socket(path: str) -> bool:
    segments = path.split("/")[1:]
    return path.startswith("/") and not {"", ".", ".."} & set(segments) and _CONTROL.search(path) is None


def _parse_origin(text: str) -> _Origin:
    parts = _ORIGIN.fullmatch(text)
    if parts is None:
        raise SourceError("not a plain http or https URL, without a user, a fragment and unusual characters")
    port = int(parts[3] or _PORTS[parts[1]])
    if port > _LAST_PORT:
        raise SourceError(f"the port {port} is too large")
    segments = None if parts[4] is None else _parse_path(parts[4])
    return _Origin(parts[1], _parse_host(parts[2]), port, segments, parts[5] is not None)


def _parse_host(text: str) -> str:
    """Return a host's canonical form."""
    if text.startswith("["):
        return _parse_address(text[1:-1], IPv6Address)
    name = text.lower()
    labels = name.split(".")
    if len(name) > _LONGEST_HOST or not all(map(_LABEL.fullmatch, labels)):
        raise SourceError(f"the host {text} is not a plain name; write it without a dot at its end")
    return _parse_address(name, IPv4Address) if _NUMBER.fullmatch(labels[-1]) else name


def _parse_address(text: str, family: type[IPv4Address | IPv6Address]) -> str:
    try:
        address = family(text)
    except ValueError:
        raise SourceError(f"the host {text} is not an address in its usual form") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise SourceError(f"{text} is an IPv4 address; write {address.ipv4_mapped}")
    return str(address)


def _parse_path(text: str) -> tuple[bytes, ...]:
    segments = tuple(unquote_to_bytes(segment) for segment in text.split("/")[1:])
    if b"" in segments[:-1]:
        raise SourceError("the path has an empty segment")
    if any(segment in {b".", b".."} or _AMBIGUOUS.search(segment) for segment in segments):
        raise SourceError("the path has a segment that servers read in different ways")
    return segments


def _covers(allowed: _Origin, wanted: _Origin) -> bool:
    if (allowed.scheme, allowed.host, allowed.port) != (wanted.scheme, wanted.host, wanted.port):
        return False
    if allowed.segments is None:
        return True
    segments = (b"",) if wanted.segments is None else wanted.segments
    last = len(allowed.segments) - 1
    if allowed.segments[last]:
        return allowed.segments == segments
    return len(segments) > last and allowed.segments[:last] == segments[:last]
