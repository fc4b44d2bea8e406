# SPDX-License-Identifier: BSD-2-Clause
"""Installation of members by playbook: the common part of the providers."""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shai_operator.providers import images, inventory, process
from shai_operator.providers.interface import Failure, ImageMissingError, Outcome, Reason
from shai_operator.providers.playbooks import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import Grounds, Host, Member, MemberConfiguration, Placement, Pool, Progress
    from shai_operator.providers.inventory import Inventories
    from shai_operator.providers.playbooks import Playbooks, Report


class PlaybookProvider(ABC):
    """Implements `interface.Provider` by playbooks; subclasses choose hosts and write inventories."""

    prefix = ""
    """Of the playbooks' names."""
    time_limit_seconds: float | None = None
    """How long a run may take; None: as long as those of others."""

    def __init__(self, playbooks: Playbooks, authority: Identity) -> None:
        self._playbooks = playbooks
        self._authority = authority
        self.installer = _collection_digest()

    @abstractmethod
    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose hosts for members."""

    @abstractmethod
    def inventories(self, host: Host) -> Inventories:
        """Return what writes the inventories for a host; ConfigurationError when the connection is not known."""

    async def provision(
        self,
        host: Host,
        members: Sequence[Member],
        configuration: MemberConfiguration,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Install members, or bring them up to date."""
        inventories = self.inventories(host)
        for member in members:
            configuration.member_directory(member)
        failure = await asyncio.to_thread(_image_failure, configuration)
        if failure is not None:
            return {member.name: Outcome(failure) for member in members}
        files = {
            **inventories.files,
            inventory.AUTHORITY_CERTIFICATE: self._authority.certificate,
            inventory.AUTHORITY_KEY: self._authority.key,
        }
        job = self._job(
            "provision.yml",
            host,
            lambda run: inventories.provision(members, configuration, run),
            files,
            members,
        )
        return _outcomes(await self._playbooks.run(job, progress, cancel), members)

    async def remove(
        self,
        host: Host,
        members: Sequence[Member],
        place: Grounds,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Stop members and delete their files."""
        inventories = self.inventories(host)
        job = self._job(
            "remove.yml",
            host,
            lambda run: inventories.removal(members, place, run),
            inventories.files,
            members,
        )
        report = await self._playbooks.run(job, progress, cancel)
        destroyed = {name: Outcome(report.record.failures.get(name) or report.failure) for name in place.condemned}
        return destroyed | _outcomes(report, members)

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
        """Copy files of a member's data to a directory of this machine."""
        inventories = self.inventories(host)
        job = self._job(
            "read.yml",
            host,
            lambda run: inventories.reading(member, place, files=files, destination=destination, directory=run),
            inventories.files,
            [member],
        )
        return _outcomes(await self._playbooks.run(job, progress, cancel), [member])[member.name]

    async def close(self) -> None:
        """End all running playbooks, including those of other providers that share `Playbooks`."""
        await self._playbooks.close()

    def _job(
        self,
        playbook: str,
        host: Host,
        inventory_of: Callable[[Path], str],
        files: Mapping[str, str],
        members: Sequence[Member],
    ) -> Job:
        machines = {member.machine.name for member in members if member.machine}
        guests = {member.name: member.machine.name for member in members if member.machine}
        guests |= {machine: machine for machine in machines}
        return Job(self.prefix + playbook, host, inventory_of, files, guests, self.time_limit_seconds)


def _outcomes(report: Report, members: Sequence[Member]) -> dict[str, Outcome]:
    record = report.record
    ends = record.statistics.get("certificate_ends") or {}
    return {
        member.name: Outcome(
            _failure(report, member),
            changed=member.name in record.changed,
            certificate_ends=_time(ends.get(member.name)),
        )
        for member in members
    }


def _failure(report: Report, member: Member) -> Failure | None:
    """Return a member's failure: its host's, then its machine's, because its own only follows from them."""
    failures = report.record.failures
    machine = member.machine.name if member.machine else ""
    return failures.get(inventory.MACHINE) or failures.get(machine) or failures.get(member.name) or report.failure


def _time(text: str | None) -> datetime | None:
    """Parse a time as openssl writes it, such as ``2027-02-18 22:22:13Z``."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _image_failure(configuration: MemberConfiguration) -> Failure | None:
    """Say how the image differs from the one in the configuration; None when it does not."""
    image = configuration.image
    try:
        now = images.read(Path(image.path).parent, Path(image.path).name)
    except ImageMissingError as error:
        return Failure(Reason.IMAGE_MISSING, str(error))
    if now.digest != image.digest:
        return Failure(Reason.IMAGE_MISSING, f"image {image.name} has changed since it was read; it will be read again")
    return None


def _collection_digest() -> str:
    """Hash the files that determine how members are installed."""
    hashed = hashlib.sha256()
    for part in ("playbooks", "plugins", "roles"):
        for path in sorted((process.COLLECTION / part).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                hashed.update(f"{path.relative_to(process.COLLECTION)}\0".encode())
                hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()
