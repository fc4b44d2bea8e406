# SPDX-License-Identifier: BSD-2-Clause
"""The interface of providers of pool members: the types and guarantees between the operator and its playbooks.

A *host* is a machine that can hold members. A *member* is one monitor with its data, state and
key-value store, installed in a directory of its own: ``<directory>/<member's name>``.

Everything here is idempotent. If a run is interrupted at any point, also by the death of the operator, the
next run with the same arguments completes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

RESERVED_VARIABLES = frozenset({"IMAGE", "DATA", "MEMBER_ADDRESS", "REDIS_SOCKET"})
"""What the installation defines itself for a member's manifests."""

_DIRECTORY_LIMIT = 60
"""Longest directory of a member: a socket's path has at most 107 bytes, with room for names beneath it."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Reason(StrEnum):
    """Why something did not succeed: reasons of a JailPool's condition Provisioned."""

    HOST_UNREACHABLE = "HostUnreachable"
    HOST_KEY_MISMATCH = "HostKeyMismatch"
    AUTHENTICATION_FAILED = "AuthenticationFailed"
    PLAYBOOK_FAILED = "PlaybookFailed"
    TOO_FEW_HOSTS = "TooFewHosts"
    TIMED_OUT = "TimedOut"
    IMAGE_MISSING = "ImageMissing"
    CANCELLED = "Cancelled"


@dataclass(frozen=True)
class Failure:
    """What went wrong: a reason for programs, and a message that says what to do about it."""

    reason: Reason
    message: str


class ConfigurationError(ValueError):
    """A configuration that no member can have; the text names the field and the remedy."""


class ImageMissingError(Exception):
    """An image is not there or is not one; reason ImageMissing. The text names what is missing and the remedy."""


@dataclass(frozen=True)
class Login:
    """How to get onto a host by SSH: with a key, and never a password."""

    user: str
    private_key: str = field(repr=False)
    """Text of the key's file. It goes into a file in the run's private directory and nowhere else."""
    host_key: str
    """The host's public key, ``ssh-ed25519 AAAA…``; a host that shows another is refused."""
    port: int = 22


@dataclass(frozen=True)
class Host:
    """A machine that can hold members. ``name`` is unique in its pool; names are DNS labels."""

    name: str
    address: str
    """The host's address for SSH, a name or a number. Hosts of two pools with the same address are one machine."""
    login: Login | None = None
    """None is this machine, or a host that is placed upon and not yet logged into."""
    max_members: int = 8


@dataclass(frozen=True)
class Pool:
    """What placement needs to know of a pool."""

    name: str
    addresses: str
    """CIDR; the member with ordinal i gets the (i+1)th address in it that a machine can have."""
    hosts: tuple[Host, ...] = ()
    """Of provider ``linux``; empty for ``local``."""
    max_members: int = 8
    """Of provider ``local``."""


@dataclass(frozen=True)
class Member:
    """A member's identity. Name, host and address follow from pool and ordinal by `Provider.place`."""

    pool: str
    name: str
    ordinal: int
    host: str
    address: str
    """Where its monitor listens; in its certificate, and $(MEMBER_ADDRESS) in manifests."""


@dataclass(frozen=True)
class Placement:
    """Which host takes which member. Those that fit nowhere are not in ``members``, and ``failure`` says why."""

    members: tuple[Member, ...]
    failure: Failure | None = None


@dataclass(frozen=True)
class Image:
    """What a member runs: a directory of the operator's machine. `images.read` makes it."""

    name: str
    path: str
    digest: str
    """SHA-256 of names, modes and contents, in hex."""


class DataMode(StrEnum):
    """How a new member's data directory comes from its source."""

    COPY = "Copy"
    LINK = "Link"
    """Hard links: at once and without more disk, for data that no task changes in place."""


@dataclass(frozen=True)
class Data:
    """A directory *on the host* that seeds a new member's data directory, once."""

    source: str
    mode: DataMode = DataMode.COPY


@dataclass(frozen=True)
class KeyValue:
    """A private, confined Redis beside the monitor."""

    seed: str = ""
    """File *on the host* with commands (RESP or inline) that are loaded once; empty: none."""


@dataclass(frozen=True)
class MemberConfiguration:
    """Everything the installation needs that is the same for all members of a pool."""

    directory: str
    """The pool's directory on its hosts, absolute; on one file system, which sockets' paths keep short."""
    image: Image
    installer: str
    """`Provider.installer`: a new version of the playbooks is a change of configuration too."""
    data: Data | None = None
    key_value: KeyValue | None = None
    variables: tuple[tuple[str, str], ...] = ()
    """For $(NAME) in manifests; seen by everybody on the host, so nothing secret."""
    monitor_port: int = 8443

    def __post_init__(self) -> None:
        """Refuse what the monitor or its supervisor would stumble over; ConfigurationError."""
        if not PurePosixPath(self.directory).is_absolute() or ".." in PurePosixPath(self.directory).parts:
            raise ConfigurationError(f"directory {self.directory!r}: expected an absolute path without '..'")
        seen: set[str] = set()
        for name, value in self.variables:
            _check_variable(name, value, seen)
            seen.add(name)

    def member_directory(self, member: Member) -> PurePosixPath:
        """Return where a member is installed; ConfigurationError when the path is too long for its sockets."""
        path = PurePosixPath(self.directory) / member.name
        if len(str(path).encode()) > _DIRECTORY_LIMIT:
            raise ConfigurationError(
                f"directory {path}: expected at most {_DIRECTORY_LIMIT} bytes, since sockets lie beneath it, "
                f"got {len(str(path).encode())}; choose a shorter spec.directory"
            )
        return path

    def digest(self, member: Member) -> str:
        """Return the SHA-256 (hex) of all that this member is installed with; equal means up to date.

        The image counts by its content and not by where the operator keeps it.
        """
        content = asdict(self)
        content["image"] = self.image.digest
        content["member"] = {"name": member.name, "address": member.address}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_variable(name: str, value: str, seen: set[str]) -> None:
    if not _VARIABLE.fullmatch(name):
        raise ConfigurationError(f"variable {name!r}: expected letters, digits and underscores, not a digit first")
    if name in RESERVED_VARIABLES:
        raise ConfigurationError(f"variable {name}: the installation defines it itself; choose another name")
    if name in seen:
        raise ConfigurationError(f"variable {name}: given twice; keep one")
    if any(ord(letter) < ord(" ") for letter in value):
        raise ConfigurationError(f"variable {name}: its value has a line break or another control character")


@dataclass(frozen=True)
class Progress:
    """Where a run stands. ``total`` is an estimate: handlers and what a host needs more are not in it."""

    host: str
    play: str
    task: str
    done: int
    total: int


@dataclass(frozen=True)
class Outcome:
    """What a run did to one member."""

    failure: Failure | None = None
    changed: bool = False
    certificate_ends: datetime | None = None
    """When the monitor's certificate expires; `Provider.provision` renews it in good time before that."""


class Provider(Protocol):
    """Installs and removes members on the hosts of one kind.

    Safe to call from several asyncio tasks of one event loop: runs on one host follow each other,
    and no more than a fixed number run at a time; those that wait hold no thread. What fails is in
    the outcomes, which have every member that was asked for; exceptions are mistakes of the caller
    (ConfigurationError) or of the program.
    A task that is cancelled ends its run, and is done when the run's processes are.
    """

    installer: str
    """Names the version of what installs; for `MemberConfiguration.installer`."""

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose a host for every ordinal; pure.

        ``current`` is the host of each member that exists: it keeps it while the host is listed,
        even when the host would take fewer now, because its data are there. The others go, in the
        order of ``ordinals``, to the host with most room. What does not fit is TooFewHosts.
        """

    async def provision(
        self,
        host: Host,
        members: Sequence[Member],
        configuration: MemberConfiguration,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Install the members on their host, or bring them up to date, and wait until their monitors are ready.

        Restarts only what a change concerns; a second call changes nothing. Other members of the
        host are left alone, so an update can go through a pool in batches. ``progress`` is called
        in the event loop. Setting ``cancel`` ends the run with the reason Cancelled.
        """

    async def remove(
        self,
        host: Host,
        members: Sequence[Member],
        directory: str,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Stop the members and delete all of theirs on the host; members that are gone are removed already.

        Refuses a directory that does not carry the member's mark.
        """

    async def close(self) -> None:
        """End the runs that are going on, and wait for their ends."""
