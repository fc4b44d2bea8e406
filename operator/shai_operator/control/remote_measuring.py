# SPDX-License-Identifier: BSD-2-Clause
"""Measures members on other hosts: the load comes from this machine, and twins run beside the member.

The twins are members like others, installed by the same provider: with the member's data, an open key-value store, and
at the member's address with ports of their own. They are removed at the end. If the operator is killed before, the next
measurement of the member replaces them, and they go with the member.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.datasets import corpus, population
from loadgen.stacks import ports
from shai_operator.control import poolspec
from shai_operator.control.measuring import MeasuringError, Slices
from shai_operator.providers import authority, directories, images
from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    DataMode,
    ImageMissingError,
    KeyValue,
    Member,
    Progress,
)
from shai_operator.reconcile.objects import name, status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from shai_operator.control.measuring import LocalLoadGenerator, Results, Subject
    from shai_operator.control.services import Services
    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import Grounds, Host, MemberConfiguration, Outcome, Provider
    from shai_operator.reconcile.objects import Object

READ = (*population.FILES, corpus.ABOUT)
"""Files of a member's data: the people, their queries, and the size of the data."""

_LOGGER = logging.getLogger(__name__)
_TWINS = {"baseline": "b", "control": "c"}
"""The names of twins in `loadgen`, and the ends of their members' names: paths of sockets have to be short."""


def twins_of(member: Member) -> list[Member]:
    """Return the members that are twins of a member while it is measured."""
    return [replace(member, name=f"{member.name}-{end}", twin_of=member.name) for end in _TWINS.values()]


class RemoteLoadGenerator:
    """Measures members of any provider, over the network. ``near`` runs the measurement on this machine."""

    def __init__(self, near: LocalLoadGenerator, provider: Provider, services: Services, root: Identity) -> None:
        self._near = near
        self._provider = provider
        self._services = services
        self._root = root

    async def run(
        self, subject: Subject, plan: Mapping[str, Any], progress: Callable[[Slices], None], cancel: asyncio.Event
    ) -> Results:
        """Measure; see `LoadGenerator.run`."""
        try:
            host = await poolspec.reached(subject.pool, subject.row["host"], self._services.cluster)
            member = _member(subject, host)
            installation = await self._installation(subject.pool, subject.row["image"])
            configurations = await self._configurations(member, installation)
        except (ConfigurationError, ImageMissingError, OSError) as error:
            raise _failed(f"member {subject.row['name']}", type(error).__name__, str(error)) from error

        measured = Slices(0, 0, "")

        def measuring(slices: Slices) -> None:
            nonlocal measured
            measured = slices
            progress(slices)

        def tell(reached: Progress) -> None:
            progress(replace(measured, message=f"{reached.play} on host {reached.host}: {reached.task}"))

        with tempfile.TemporaryDirectory(prefix="remote-", dir=self._services.settings.runtime) as path:
            place = Path(path)
            async with self._twins(poolspec.grounds(subject.pool), (host, member), configurations, tell, cancel):
                async with self._turn(host, tell):
                    outcome = await self._provider.read(
                        host, member, poolspec.grounds(subject.pool), READ, place / "data", progress=tell, cancel=cancel
                    )
                _check(outcome, f"the data of member {member.name}")
                description = self._description(subject, member, installation, configurations, place)
                return await self._near.run(replace(subject, description=description), plan, measuring, cancel)

    async def _installation(self, pool: Object, digest: str) -> MemberConfiguration:
        """Return the configuration of the member; MeasuringError when it has another image than it should."""
        image = await asyncio.to_thread(images.read, self._services.settings.images, poolspec.image(pool))
        if image.digest != digest:
            raise MeasuringError(f"image {image.name} has changed and the member still has the one before: try later")
        return poolspec.configuration(pool, image, self._provider.installer)

    async def _configurations(self, member: Member, installation: MemberConfiguration) -> list[MemberConfiguration]:
        """Return the configurations of the twins: as the member's, but for data, store and port."""
        data = Data(str(installation.member_directory(member) / "data"), DataMode.SHARE)
        store = installation.key_value
        found = []
        port = installation.monitor_port
        for _ in _TWINS:
            port = await asyncio.to_thread(ports.next_closed, member.address, port)
            opened = KeyValue(store.seed, secrets.token_hex(8)) if store else None
            found.append(replace(installation, data=data, key_value=opened, monitor_port=port))
        return found

    @contextlib.asynccontextmanager
    async def _twins(
        self,
        place: Grounds,
        on: tuple[Host, Member],
        configurations: Sequence[MemberConfiguration],
        tell: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> AsyncIterator[None]:
        host, twins = on[0], twins_of(on[1])
        try:
            for twin, configuration in zip(twins, configurations, strict=True):
                async with self._turn(host, tell):
                    outcomes = await self._provider.provision(host, [twin], configuration, progress=tell, cancel=cancel)
                _check(outcomes[twin.name], f"twin {twin.name}")
            yield
        except MeasuringError as error:
            left = await self._removed(host, twins, place, tell)
            raise MeasuringError("; and ".join([str(error), *left])) from error
        except BaseException:
            await self._removed(host, twins, place, tell)
            raise
        left = await self._removed(host, twins, place, tell)
        if left:
            raise MeasuringError("; and ".join(left))

    async def _removed(
        self, host: Host, twins: Sequence[Member], place: Grounds, tell: Callable[[Progress], None]
    ) -> list[str]:
        """Remove twins, also after a cancellation; say which ones are left, because they enforce nothing."""
        async with self._turn(host, tell):
            outcomes = await self._provider.remove(host, twins, place, progress=tell, cancel=asyncio.Event())
        failures = {twin: outcome.failure for twin, outcome in outcomes.items() if outcome.failure is not None}
        for twin, failure in failures.items():
            _LOGGER.error("twin %s is left on host %s: %s", twin, host.name, failure.message)
        return [
            f"twin {twin}, which enforces nothing, is left on host {host.name} ({failure.reason}); "
            "measuring the member again, or removing it, removes the twin"
            for twin, failure in failures.items()
        ]

    def _turn(self, host: Host, tell: Callable[[Progress], None]) -> AbstractAsyncContextManager[None]:
        """Wait for a host's lock and hold it. Who else has it is not for authors of pipelines to know."""

        def waiting(_: str) -> None:
            tell(Progress(host.name, "Waiting", "something else is done there", 0, 0))

        return self._services.leases.hold(host.address, "a Benchmark", waiting)

    def _description(
        self,
        subject: Subject,
        member: Member,
        installation: MemberConfiguration,
        configurations: Sequence[MemberConfiguration],
        place: Path,
    ) -> dict[str, Any]:
        """Describe the member and its twins to the measurement, with a certificate of the operator."""
        client = authority.issue_client(self._root, "shai-operator")
        files = {"certificate": client.certificate, "key": client.key, "authority": self._root.certificate}
        for file, text in files.items():
            directories.write_private(place / file, text)

        def server(configuration: MemberConfiguration) -> dict[str, str]:
            host = f"[{member.address}]" if ":" in member.address else member.address
            address = {"address": f"{host}:{configuration.monitor_port}"}
            return {**address, **{file: str(place / file) for file in files}}

        return {
            **subject.description,
            "image": installation.image.path,
            "program": str(self._services.settings.shai) if member.machine else "",
            "data": str(place / "data"),
            "monitor": server(installation),
            "store": "",
            "seed": "",
            "twins": dict(zip(_TWINS, map(server, configurations), strict=True)),
        }


def _member(subject: Subject, host: Host) -> Member:
    pool, row = subject.pool, subject.row
    machine = poolspec.machine(pool, int(row["ordinal"]))
    if machine is not None:  # it stays on the image that it was made from
        rows = status(pool).get("virtualMachines") or ()
        made = {known["name"]: str(known.get("image") or "") for known in rows}
        machine = replace(machine, image=made.get(machine.name, ""))
    return Member(name(pool), row["name"], int(row["ordinal"]), host.name, row["address"], machine)


def _check(outcome: Outcome, what: str) -> None:
    if outcome.failure is not None:
        raise _failed(what, outcome.failure.reason, outcome.failure.message)


def _failed(what: str, reason: str, message: str) -> MeasuringError:
    """Return what a status may say. The message is for the owner of the pool: it quotes programs, logs and settings."""
    _LOGGER.error("%s: %s: %s", what, reason, message)
    return MeasuringError(f"{what}: {reason}; the operator's log has more (look there for {what})")
