# SPDX-License-Identifier: BSD-2-Clause
"""Provider ``bhyve``: members in jails of virtual machines, on FreeBSD hosts that are reached by SSH."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from images import descriptions
from images.errors import ImageError
from shai_operator.providers import ssh
from shai_operator.providers.bhyve_inventory import BhyveInventories
from shai_operator.providers.installation import PlaybookProvider
from shai_operator.providers.interface import ConfigurationError, DataMode, Failure, ImageMissingError, Outcome, Reason
from shai_operator.providers.machine_placement import place
from shai_operator.providers.playbooks import Job
from shai_operator.reconcile.surveys import BROKEN, RUNNING, STOPPED, HostSurvey, SurveyedMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import (
        Host,
        Member,
        MemberConfiguration,
        Placement,
        Pool,
        Progress,
    )
    from shai_operator.providers.machine_settings import MachineSettings
    from shai_operator.providers.playbooks import Playbooks, Report
    from shai_operator.reconcile.surveys import VirtualMachine

_TEMPLATES = str(descriptions.FOLDER / "firstboot")
_LOOK_SECONDS = 300.0
"""Long enough for as many machines out of reach as a host can have, and short enough to look at hosts again."""
_MOST_MEBIBYTES = 1 << 40
_SYSTEM, _ARCHITECTURE = "freebsd", "amd64"
"""What machines run: jails are FreeBSD's, and the roles give a machine the devices of amd64."""
_STATES = {"running": RUNNING, "stopped": STOPPED}


class BhyveProvider(PlaybookProvider):
    """Installs members in jails of virtual machines, which it makes."""

    prefix = "bhyve_"
    time_limit_seconds = 3600.0  # an image is fetched, and machines boot and restart

    def __init__(self, playbooks: Playbooks, authority: Identity) -> None:
        super().__init__(playbooks, authority)
        # The authority lives as long as the operator's installation, and no other installation has it. When it was
        # lost, machines have to be adopted: docs/operations.md says how.
        self._owner = hashlib.sha256(authority.certificate.encode()).hexdigest()

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose hosts for members' virtual machines."""
        if pool.machines is None:
            raise ValueError(f"pool {pool.name}: asked to place members without settings of virtual machines")
        return place(pool, pool.machines, ordinals, current)

    def inventories(self, host: Host) -> BhyveInventories:
        """Return what writes the inventories for a host; ConfigurationError when the login is not well-formed."""
        login = ssh.login(host)
        ssh.public_key(login)  # refuses a key that cannot be read before a run starts
        return BhyveInventories(host, login, self._owner, _described, _TEMPLATES, _packages)

    async def provision(
        self,
        host: Host,
        members: Sequence[Member],
        configuration: MemberConfiguration,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        """Make virtual machines and install members in them, or bring them up to date."""
        kept = DataMode.SHARE if all(member.twin_of for member in members) else DataMode.COPY
        if configuration.data is not None and configuration.data.mode is not kept:
            raise ConfigurationError(
                f"data.mode {configuration.data.mode}: a jail shares no file system with its machine; choose Copy"
            )
        outcomes: dict[str, Outcome] = {}
        for image, some in groupby(sorted(members, key=_image), key=_image):
            same = list(some)
            try:
                await asyncio.to_thread(_described, image)
            except ImageError as error:
                outcomes |= {member.name: Outcome(Failure(Reason.IMAGE_MISSING, str(error))) for member in same}
            else:
                outcomes |= await super().provision(host, same, configuration, progress=progress, cancel=cancel)
        return outcomes

    async def survey(
        self, host: Host, machines: Sequence[VirtualMachine], settings: MachineSettings, *, cancel: asyncio.Event
    ) -> HostSurvey:
        """Look at a host; see `interface.Surveyor`."""
        inventories = self.inventories(host)
        guests = {machine.name: machine.name for machine in machines}
        job = Job(
            "bhyve_survey.yml",
            host,
            lambda run: inventories.survey(machines, settings, run),
            inventories.files,
            guests,
            time_limit_seconds=_LOOK_SECONDS,
            looks=True,
        )
        return self._found(await self._playbooks.run(job, lambda _: None, cancel))

    def machine_image(self, name: str, settings: MachineSettings) -> str:
        """Return the name and the SHA-512 of an image; see `interface.Surveyor`."""
        try:
            description = descriptions.read(name)
            _check(name, description)
            return f"{name}@{descriptions.pin(name, description, settings.checksum)}"
        except ImageError as error:
            raise ImageMissingError(str(error)) from error

    def _found(self, report: Report) -> HostSurvey:
        """Read a survey from what its playbook has reported."""
        now = datetime.now(UTC)
        if report.failure is not None:
            return HostSurvey(now, reason=report.failure.reason, message=report.failure.message)
        statistics = report.record.statistics
        host, inside = statistics.get("bhyve_host"), statistics.get("bhyve_machines") or {}
        if not isinstance(host, dict):
            failure = report.record.explain()
            return HostSurvey(now, reason=failure.reason, message=failure.message)
        free = int(host["free_memory_mebibytes"])
        if not 0 <= free <= _MOST_MEBIBYTES:
            message = f"the host says that it has {free} MiB of free memory: see what sysctl prints there"
            return HostSurvey(now, reason=Reason.PLAYBOOK_FAILED, message=message)
        machines = tuple(self._machine(found, inside.get(found["name"]) or {}) for found in host["virtual_machines"])
        return HostSurvey(now, free, str(host["version"]), machines)

    def _machine(self, found: Mapping[str, str], inside: Mapping[str, Any]) -> SurveyedMachine:
        """Read a machine's row. Its directory has its name; a mark with another one is that of a copy."""
        name, mark = found["name"], _mark(found["mark"])
        known = _STATES.get(found["state"].partition(" ")[0], BROKEN)
        ours = mark.get("name") == name and mark.get("owner") == self._owner
        return SurveyedMachine(
            name=name,
            pool=str(mark.get("pool") or "") if mark.get("name") == name else "",
            own=ours,
            state=known,
            image=str(mark.get("image") or ""),
            jails=tuple(sorted(map(str, inside.get("jails") or ()))),
            version=str(inside.get("version") or ""),
            message=found["state"] if known == BROKEN else "",
        )


def _mark(text: str) -> Mapping[str, Any]:
    """Return what a machine's mark says; nothing when there is none, or it cannot be read."""
    try:
        mark = json.loads(text or "{}")
    except (ValueError, RecursionError):  # the latter is what nesting without end leads to
        return {}
    return mark if isinstance(mark, dict) else {}


def _image(member: Member) -> str:
    return member.machine.image if member.machine else ""


def _packages(image: str) -> list[str]:
    """Return the packages that an image of members has for its virtual machines, such as that of the module."""
    return sorted(map(str, Path(image).glob("packages/*.pkg")))


def _check(name: str, description: Mapping[str, Any]) -> None:
    """Refuse an image that no machine of this provider can run; ImageMissingError."""
    system, architecture = description["system"], description["architecture"]
    if system != _SYSTEM:
        raise ImageMissingError(
            f"image {name} is {system}, and provider bhyve has members in jails of {_SYSTEM}: choose an image of "
            f"{_SYSTEM} in virtualMachine.image"
        )
    if architecture != _ARCHITECTURE:
        message = (
            f"image {name} is for {architecture}, and provider bhyve runs {_ARCHITECTURE} machines only for now: "
            f"choose an image for {_ARCHITECTURE} in virtualMachine.image, and hosts with such processors"
        )
        raise ImageMissingError(message, Reason.ARCHITECTURE_MISMATCH)


def _described(image: str) -> Mapping[str, Any]:
    """Return the description of an image ``NAME@SHA512`` with this checksum; ImageError when there is none."""
    name, _, checksum = image.partition("@")
    description = descriptions.read(name)
    return {**description, "checksum": {"algorithm": "sha512", "value": checksum}}
