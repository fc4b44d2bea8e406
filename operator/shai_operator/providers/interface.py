# SPDX-License-Identifier: BSD-2-Clause
"""The interface of providers of pool members: the types and guarantees between the operator and its playbooks.

A *host* is a machine that can hold members. A *member* is one monitor with its data, state and key-value store,
installed in a directory of its own: ``<directory>/<member's name>``.

Everything here is idempotent. If a run is interrupted at any point, even because the operator is killed, the next run
with the same arguments completes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from shai_operator.reconcile import allowlist

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from shai_operator.providers.machine_settings import MachineSettings
    from shai_operator.reconcile.surveys import HostSurvey, VirtualMachine

RESERVED_VARIABLES = frozenset({"IMAGE", "DATA", "MEMBER_ADDRESS", "REDIS_SOCKET"})
"""Variables in a member's manifests that the installation itself defines."""

_DIRECTORY_LIMIT = 60
"""Longest directory of a member: a socket's path has at most 107 bytes, and includes names under the directory."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\(([^()]*)\)")


class Reason(StrEnum):
    """Reasons of failures, as in a JailPool's condition Provisioned."""

    HOST_UNREACHABLE = "HostUnreachable"
    HOST_KEY_MISMATCH = "HostKeyMismatch"
    AUTHENTICATION_FAILED = "AuthenticationFailed"
    PLAYBOOK_FAILED = "PlaybookFailed"
    TOO_FEW_HOSTS = "TooFewHosts"
    TIMED_OUT = "TimedOut"
    IMAGE_MISSING = "ImageMissing"
    CANCELLED = "Cancelled"
    SURVEYING = "Surveying"
    NO_VIRTUALIZATION = "NoVirtualization"
    STORAGE_FULL = "StorageFull"
    IMAGE_FETCH_FAILED = "ImageFetchFailed"
    CHECKSUM_MISMATCH = "ChecksumMismatch"
    ARCHITECTURE_MISMATCH = "ArchitectureMismatch"
    GUEST_UNREACHABLE = "GuestUnreachable"
    BRIDGE_CONFLICT = "BridgeConflict"
    JAIL_STUCK = "JailStuck"
    CLOCK_SKEW = "ClockSkew"
    ENFORCEMENT_INSUFFICIENT = "EnforcementInsufficient"


@dataclass(frozen=True)
class Failure:
    """A failure: a reason for programs, and a message that says what to do."""

    reason: Reason
    message: str


class ConfigurationError(ValueError):
    """A configuration that no member can have; the text names the field and the remedy."""


class ImageMissingError(Exception):
    """An image is missing, incomplete or of the wrong kind. The text names what is wrong and the remedy."""

    def __init__(self, message: str, reason: Reason = Reason.IMAGE_MISSING) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Login:
    """The SSH login for a host: always with a key, never with a password."""

    user: str
    private_key: str = field(repr=False)
    """Content of the key's file. It is only written to a file in the run's private directory."""
    host_key: str
    """The host's public key, ``ssh-ed25519 AAAA…``; a host with another key is refused."""
    port: int = 22


@dataclass(frozen=True)
class Host:
    """A machine that can hold members. ``name`` is unique in its pool; names are DNS labels."""

    name: str
    address: str
    """The host's address for SSH, a name or a number. Hosts of two pools with the same address are one machine."""
    login: Login | None = None
    """None for this machine, and for a host that is used for placement only."""
    max_members: int = 8
    gone: bool = False
    """Whether a person has stated that nothing runs on it any more."""
    known: bool = False
    """Whether all machines of the pool on it are known, because it was reached since the pool has a status."""
    survey: HostSurvey | None = None
    """What the last survey found; None: there was none yet, or the provider makes none."""
    promised: tuple[tuple[str, int], ...] = ()
    """The virtual machines of other pools that are placed there, running or not, with their memory in MiB."""


@dataclass(frozen=True)
class Pool:
    """The parts of a pool that placement needs."""

    name: str
    addresses: str
    """CIDR; the member with ordinal i gets the (i+1)th address in it that a machine can have."""
    hosts: tuple[Host, ...] = ()
    """The hosts of provider ``linux``; empty for ``local``."""
    max_members: int = 8
    """The most members for provider ``local``."""
    machines: MachineSettings | None = None
    """For provider ``bhyve`` only."""


@dataclass(frozen=True)
class Member:
    """A member's identity. Name, host and address follow from pool and ordinal by `Provider.place`."""

    pool: str
    name: str
    ordinal: int
    host: str
    address: str
    """The address at which its monitor listens; in its certificate, and $(MEMBER_ADDRESS) in manifests."""
    machine: VirtualMachine | None = None
    """The virtual machine that holds it; None: it is on the host itself."""
    twin_of: str = ""
    """The member beside which it runs for a measurement, in its jail where there are jails; empty: it is no twin."""


@dataclass(frozen=True)
class Placement:
    """The host of each member. Members that fit nowhere are not in ``members``, and ``failure`` says why."""

    members: tuple[Member, ...]
    failure: Failure | None = None


@dataclass(frozen=True)
class Image:
    """The programs of a member: a directory on the operator's machine. `images.read` makes it."""

    name: str
    path: str
    digest: str
    """SHA-256 of names, modes and contents, in hex."""


class DataMode(StrEnum):
    """How a new member's data directory is made from its source."""

    COPY = "Copy"
    LINK = "Link"
    """Hard links: fast and without more disk space, for data that no task changes in place."""
    SHARE = "Share"
    """The source itself, which is the data of another member: for a twin of it."""


@dataclass(frozen=True)
class Data:
    """A directory *on the host* that seeds a new member's data directory, once."""

    source: str
    mode: DataMode = DataMode.COPY


@dataclass(frozen=True)
class KeyValue:
    """A private Redis beside the monitor."""

    seed: str = ""
    """File *on the host* with commands (RESP or inline) that are run once; empty: none."""
    open: str = ""
    """The name of an open store, which nobody can guess, for mode baseline, whose tasks connect themselves; empty: a
    confined one. A name has letters and digits."""


@dataclass(frozen=True)
class MemberConfiguration:
    """The settings of an installation that are the same for all members of a pool."""

    directory: str
    """The pool's directory on its hosts, absolute, on one file system. It has to be short because of the sockets'
    paths."""
    image: Image
    installer: str
    """`Provider.installer`: new playbooks change the configuration, too."""
    data: Data | None = None
    key_value: KeyValue | None = None
    variables: tuple[tuple[str, str], ...] = ()
    """For $(NAME) in manifests. Every user of the host can read them, so they must not be secret."""
    runtimes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What tasks may execute and read beside their conduits: absolute paths, by name, with $(NAME) of ``variables`` and
    $(IMAGE)."""
    sources: tuple[str, ...] = ()
    """The sources of facts and the sockets that manifests may name."""
    monitor_port: int = 8443
    machines: MachineSettings | None = None
    """The settings of the members' virtual machines, for provider ``bhyve`` only."""

    def __post_init__(self) -> None:
        """Refuse values with which the monitor or its supervisor would fail; ConfigurationError."""
        if not PurePosixPath(self.directory).is_absolute() or ".." in PurePosixPath(self.directory).parts:
            raise ConfigurationError(f"directory {self.directory!r}: expected an absolute path without '..'")
        seen: set[str] = set()
        for name, value in self.variables:
            _check_variable(name, value, seen)
            seen.add(name)
        for name, paths in self.runtimes:
            _check_runtime(name, paths, seen | {"IMAGE"})
        try:
            allowlist.parse(self.sources)
        except allowlist.SourceError as error:
            raise ConfigurationError(f"spec.allowedSources: {error}") from error

    def member_directory(self, member: Member) -> PurePosixPath:
        """Return a member's directory; ConfigurationError when the path is too long for its sockets."""
        path = PurePosixPath(self.directory) / member.name
        if len(str(path).encode()) > _DIRECTORY_LIMIT:
            raise ConfigurationError(
                f"directory {path}: expected at most {_DIRECTORY_LIMIT} bytes, since sockets lie beneath it, "
                f"got {len(str(path).encode())}; choose a shorter spec.directory"
            )
        return path

    def digest(self, member: Member) -> str:
        """Return the SHA-256 (hex) of everything that determines this member's installation; equal means up to date.

        The image contributes its content, not its path. A virtual machine's image does not contribute: a member cannot
        be moved to another one by an installation.
        """
        content = asdict(self)
        content["image"] = self.image.digest
        if not self.runtimes:
            del content["runtimes"]  # the digest is that of a pool that is older than they are
        if not self.sources:
            del content["sources"]  # a digest without them is as old as the members that have it
        del content["machines"]
        if self.machines is not None:
            content["machines"] = self.machines.installed()
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


def _check_runtime(name: str, paths: Sequence[str], known: Collection[str]) -> None:
    """Refuse what the schema does not see; the monitor checks where the paths lead."""
    for path in paths:
        undefined = [variable for variable in _REFERENCE.findall(path) if variable not in known]
        if undefined:
            raise ConfigurationError(
                f"runtime {name}: {path} has $({undefined[0]}), and only $(IMAGE) and the pool's variables are "
                "replaced there; add it to spec.variables"
            )


@dataclass(frozen=True)
class Grounds:
    """Where the members of a pool are on their hosts."""

    pool: str
    directory: str
    machines: MachineSettings | None = None
    condemned: frozenset[str] = frozenset()
    """The names of the virtual machines to destroy, because none of their members stays."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run. ``total`` is an estimate, without handlers and included tasks."""

    host: str
    play: str
    task: str
    done: int
    total: int


@dataclass(frozen=True)
class Outcome:
    """The result of a run for one member."""

    failure: Failure | None = None
    changed: bool = False
    certificate_ends: datetime | None = None
    """When the monitor's certificate expires; `Provider.provision` renews it before that."""


class Provider(Protocol):
    """Installs and removes members on the hosts of one kind.

    Safe to call from several asyncio tasks of one event loop. Runs on one host follow each other, and only a fixed
    number run at a time; waiting runs hold no thread. Failures are in the outcomes, which include every requested
    member. Exceptions are mistakes of the caller (ConfigurationError) or of the program. Cancelling a task ends its
    run; the task is done when the run's processes have ended.
    """

    installer: str
    """The version of the installing code, for `MemberConfiguration.installer`."""

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose a host for every ordinal; pure.

        ``current`` is the host of each existing member. While this host is listed, the member keeps it, even if the
        host now takes fewer members, because the data are there. The other ordinals go, in the order of ``ordinals``,
        to the host with most room. If some do not fit, the failure is TooFewHosts.
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

        Only the parts that a change affects are restarted; a second call changes nothing. Other members of the host are
        not affected, so an update can go through a pool in batches. ``progress`` is called in the event loop. Setting
        ``cancel`` ends the run with the reason Cancelled.
        """

    async def remove(
        self,
        host: Host,
        members: Sequence[Member],
        place: Grounds,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Stop the members and delete all their files on the host; members that do not exist count as removed.

        Refuses a directory that does not carry the member's mark. Virtual machines in ``place.condemned`` are destroyed
        with all that is in them, if they carry the mark of this operator. They have outcomes, too.
        """

    async def read(
        self,
        host: Host,
        member: Member,
        place: Grounds,
        files: Sequence[str],
        destination: Path,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Outcome:
        """Copy files of a member's data, by their paths in it, to a directory of this machine.

        Files that are missing, or links, are left out.
        """

    async def close(self) -> None:
        """End all running playbooks, and wait for them."""


class Surveyor(Protocol):
    """A provider that has to look at hosts before it can place members."""

    async def survey(
        self, host: Host, machines: Sequence[VirtualMachine], settings: MachineSettings, *, cancel: asyncio.Event
    ) -> HostSurvey:
        """Look at a host, and into ``machines`` as far as they can be reached; changes nothing.

        If the host cannot be surveyed, the survey says why. ConfigurationError as elsewhere.
        """

    def machine_image(self, name: str, settings: MachineSettings) -> str:
        """Return the name and the SHA-512 of the image with this name: ``NAME@SHA512``.

        ImageMissingError when there is no sound description of that name, no checksum, or when machines of the provider
        cannot run it. Reads a file.
        """
