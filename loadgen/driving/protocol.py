# SPDX-License-Identifier: BSD-2-Clause
"""Sys-E's HTTP interface from the client's side: one connection is one session.

Lean on purpose: requests are prebuilt bytes and answers go through the C parser of
geventhttpclient, so that the load generator's one core outruns the system's. A lost
connection is an error and never a silent reconnection, which would be a new session.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import gevent.socket
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from geventhttpclient._parser import HTTPParseError, HTTPResponseParser

from loadgen.driving import addresses
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from loadgen.datasets.population import Person

SIGNED_PREFIX = "shai-session-v1\n"
TIMEOUT_SECONDS = 15.0
_RECEIVE_BYTES = 65536
_RESULT_FIELDS = {"id", "title", "owner", "visibility", "snippet"}
_HTTP_OK = 200


class ProtocolError(LoadgenError):
    """Sys-E answered something else than its interface promises: what was expected, what came."""


@lru_cache(maxsize=65536)
def _key(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


def sign(person: Person, nonce: str) -> str:
    """Sign a session's nonce (lower-case hex) as ``person``; the signature in hex."""
    return _key(person.seed).sign(f"{SIGNED_PREFIX}{person.name}\n{nonce}".encode()).hex()


class Session:
    """A connection to Sys-E, first anonymous, then (after login) a person's.

    ``host`` is where Sys-E listens; ``source`` the local address to connect from, from
    which the monitor derives the region (empty: whatever the kernel chooses).
    """

    def __init__(self, host: tuple[str, int], source: str = "") -> None:
        self._host = f"{host[0]}:{host[1]}"
        self._socket = gevent.socket.create_connection(
            host, timeout=TIMEOUT_SECONDS, source_address=(source, 0) if source else None
        )
        self._socket.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)

    def login(self, person: Person) -> dict[str, Any]:
        """Authenticate; what Sys-E says of the session (principal, region, mode, instance)."""
        greeting = self.exchange("GET", "/session")
        nonce = greeting.get("nonce")
        if not isinstance(nonce, str):
            raise ProtocolError(f"GET /session: expected a nonce, got {greeting!r}")
        body = json.dumps({"principal": person.name, "signature": sign(person, nonce)})
        bound = self.exchange("POST", "/session", body.encode())
        if bound.get("principal") != person.name:
            raise ProtocolError(f"POST /session: expected principal {person.name!r}, got {bound!r}")
        return bound

    def search(self, text: str, count: int = 10) -> dict[str, Any]:
        """Search; the answer after checking that it answers this query in the promised shape."""
        answer = self.exchange("GET", f"/search?q={quote(text, safe='')}&n={count}")
        if answer.get("query") != text:
            raise ProtocolError(f"/search: asked {text!r}, got an answer to {answer.get('query')!r}")
        results = answer.get("results")
        if not isinstance(results, list) or len(results) > count:
            raise ProtocolError(f"/search: expected up to {count} results, got {results!r:.200}")
        for result in results:
            if not isinstance(result, dict) or not result.keys() >= _RESULT_FIELDS:
                raise ProtocolError(f"/search: a result lacks some of {sorted(_RESULT_FIELDS)}: {result!r:.200}")
        return answer

    def close(self) -> None:
        """End the session; for the worker this is the peer closing."""
        self._socket.close()

    def exchange(self, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
        """Send one request and return the JSON object answered with status 200."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\n"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._socket.sendall(head.encode() + b"\r\n" + body)
        status, content = self._receive(f"{method} {path}")
        if status != _HTTP_OK:
            raise ProtocolError(f"{method} {path}: expected status 200, got {status}: {content[:200]!r}")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise ProtocolError(f"{method} {path}: expected JSON, got {content[:200]!r}") from error
        if not isinstance(answer, dict):
            raise ProtocolError(f"{method} {path}: expected a JSON object, got {content[:200]!r}")
        return answer

    def _receive(self, request: str) -> tuple[int, bytes]:
        answer = _Answer()
        while not answer.complete:
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                raise ProtocolError(f"{request}: expected an answer, the connection was closed")
            try:
                answer.feed(data)
            except HTTPParseError as error:
                raise ProtocolError(f"{request}: expected HTTP, got {data[:80]!r}") from error
        return answer.get_code(), bytes(answer.body)


def search_once(host: tuple[str, int], person: Person, text: str, count: int) -> dict[str, Any]:
    """Search in a session of its own, from the person's home region."""
    session = Session(host, addresses.source_address(person.region, 1) if addresses.is_loopback(host[0]) else "")
    try:
        session.login(person)
        return session.search(text, count)
    finally:
        session.close()


class _Answer(HTTPResponseParser):
    """Keeps the body and drops the header fields, unlike the package's own class."""

    def __init__(self) -> None:
        super().__init__()
        self.complete = False
        self.body = bytearray()

    def _on_body(self, data: bytes) -> None:
        self.body += data

    def _on_message_complete(self) -> None:
        self.complete = True

    def _ignore(self, *_: object) -> None:
        pass

    _on_status = _on_message_begin = _on_headers_complete = _on_header_field = _on_header_value = _ignore
