# SPDX-License-Identifier: BSD-2-Clause
"""Has a pool's provider install and remove members."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.control import poolspec
from shai_operator.control.member_observer import failure
from shai_operator.control.remote_measuring import twins_of
from shai_operator.providers import images
from shai_operator.providers.interface import ConfigurationError, Member, Outcome, Reason
from shai_operator.providers.interface import Failure as ProviderFailure
from shai_operator.providers.local import LOCAL_HOST
from shai_operator.reconcile import machines, members
from shai_operator.reconcile.actions import WARNING, Emit, Plan
from shai_operator.reconcile.members import ForgetMembers, ProvisionMembers, RemoveMembers
from shai_operator.reconcile.objects import name, reference
from shai_operator.reconcile.orphans import RemoveOrphans
from shai_operator.reconcile.surveys import machine_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from shai_operator.control.jobs import Job
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.services import Services
    from shai_operator.providers.interface import Host, MemberConfiguration, Placement, Progress, Provider
    from shai_operator.reconcile.members import Place
    from shai_operator.reconcile.objects import Object

MEMBERS = 256
"""The most members of a pool."""
PROGRESS_SECONDS = 0.5
"""How long progress may be delayed before it is written to the status."""


class Installer:
    """Starts the jobs ``provision`` and ``remove`` of one pool's members."""

    def __init__(self, services: Services, seen: MemberObserver, touched: Callable[[str], None]) -> None:
        self._services = services
        self._members = seen
        self._touched = touched
        """Called with a host's name before and after something is done there."""
        self._provider: Provider | None = None
        self._pool: Object = {}
        self._placed: Placement | None = None
        self._configuration: MemberConfiguration | None = None

    def placed(self, pool: Object, provider: Provider, placement: Placement) -> None:
        """Store the placement of the members."""
        self._pool, self._provider, self._placed = pool, provider, placement

    def hosts_of_machines(self) -> dict[str, str]:
        """Return the host of each virtual machine by its name, as the last placement has it."""
        members = self._placed.members if self._placed else ()
        return {member.machine.name: member.host for member in members if member.machine}

    async def configurations(self) -> dict[str, str]:
        """Return the digest with which each member should be installed.

        ImageMissingError or ConfigurationError when the spec cannot be followed.
        """
        provider, placement = self._the_provider(), self._placed
        image = await asyncio.to_thread(images.read, self._services.settings.images, poolspec.image(self._pool))
        configuration = poolspec.configuration(self._pool, image, provider.installer)
        self._configuration = configuration
        found = {}
        for member in placement.members if placement else ():
            configuration.member_directory(member)  # refuses a path that is too long before an installation starts
            found[member.name] = configuration.digest(member)
        return found

    def carry_out(self, pool: Object, action: ProvisionMembers | RemoveMembers | ForgetMembers | RemoveOrphans) -> None:
        """Start what an action asks for."""
        match action:
            case ProvisionMembers():
                self._provision(pool, action)
            case RemoveMembers():
                self._remove(pool, action)
            case RemoveOrphans():
                self._remove_orphans(pool, action)
            case ForgetMembers():
                for place in action.members:
                    self._members.dismiss(place.name)

    def _provision(self, pool: Object, action: ProvisionMembers) -> None:
        """Start to install members of one host."""
        configuration = self._configuration
        if configuration is None:
            raise ValueError(f"{name(pool)}: asked to install members without a configuration")
        provider = self._the_provider()
        wanted = [_member(pool, place) for place in action.members]

        async def work(job: Job) -> None:
            async def run(host: Host, tell: Callable[[Progress], None]) -> Mapping[str, Outcome]:
                return await provider.provision(host, wanted, configuration, progress=tell, cancel=job.cancel)

            outcomes = await self._on_host(pool, action.host, wanted, job, run, what="an installation")
            for member in wanted:
                seen = self._members.of(member.name)
                outcome = outcomes[member.name]
                if job.cancel.is_set():
                    continue  # the caller that cancelled it decides what happens next
                if outcome.failure is None or outcome.failure.reason not in machines.OF_HOSTS:
                    seen.healed += 1
                if outcome.failure is None:
                    seen.configuration, seen.image = configuration.digest(member), configuration.image.digest
                    seen.certificate_ends = outcome.certificate_ends
                    seen.failed, seen.failures, seen.bring_up_failed = None, 0, None
                else:
                    seen.failed = failure(outcome.failure.reason, outcome.failure.message, seen.failed)
            self._members.look_now()

        for place in action.members:
            self._members.of(place.name).gone = False
        self._begin("provision", pool, action.members, work)

    def stop(self) -> None:
        """Stop the running installations, because the members will be removed in any case."""
        self._members.cancel("provision")

    def _remove(self, pool: Object, action: RemoveMembers) -> None:
        """Start to remove members from one host."""
        provider = self._the_provider()
        wanted = [_member(pool, place) for place in action.members]
        # A measurement that was cut off may have left its twins on another host.
        alone = action.host == LOCAL_HOST or machines.has_machines(pool)
        twins = [] if alone else [twin for member in wanted for twin in twins_of(member)]
        place = poolspec.grounds(pool, [machine_name(name(pool), number) for number in action.condemned])

        async def work(job: Job) -> None:
            async def run(host: Host, tell: Callable[[Progress], None]) -> Mapping[str, Outcome]:
                return await provider.remove(host, [*wanted, *twins], place, progress=tell, cancel=job.cancel)

            outcomes = await self._on_host(pool, action.host, wanted, job, run, what="a removal")
            for member in wanted:
                outcome = outcomes[member.name]
                if outcome.failure is None:
                    self._members.dismiss(member.name)
                else:
                    seen = self._members.of(member.name)
                    reason, message = outcome.failure.reason, outcome.failure.message
                    seen.failed = failure(reason, message, seen.failed, removal=True)

        self._begin("remove", pool, action.members, work)

    def _remove_orphans(self, pool: Object, action: RemoveOrphans) -> None:
        """Start to destroy virtual machines, and to remove jails, that no pool wants."""
        provider = self._the_provider()
        own = {found.name: found for ordinal in range(MEMBERS) if (found := poolspec.machine(pool, ordinal))}
        jails = [
            Member(name(pool), jail, 0, action.host, "", own[machine])
            for machine, jail in sorted(action.jails)
            if machine in own
        ]
        place = poolspec.grounds(pool, action.machines)

        async def work(job: Job) -> None:
            async def run(host: Host, tell: Callable[[Progress], None]) -> Mapping[str, Outcome]:
                return await provider.remove(host, jails, place, progress=tell, cancel=job.cancel)

            outcomes = await self._on_host(pool, action.host, jails, job, run, what="a removal of orphans")
            for orphan, outcome in sorted(outcomes.items()):
                if outcome.failure is not None:
                    text = f"{action.host}/{orphan} cannot be deleted: {outcome.failure.message}"
                    await self._services.executor.execute(Plan([Emit(pool, WARNING, "OrphanNotDeleted", text)]))

        key = f"{name(pool)}/orphans/{action.host}"
        self._services.jobs.start(key, work, lambda: self._services.loop.queue.add(reference(pool)))

    def _begin(self, kind: str, pool: Object, places: Sequence[Place], work: Callable[[Job], Awaitable[None]]) -> None:
        key = f"{name(pool)}/{kind}/{','.join(place.name for place in places)}"
        job = self._services.jobs.start(key, work, lambda: self._services.loop.queue.add(reference(pool)))
        for place in places:
            self._members.began(place.name, kind, job)

    async def _on_host(
        self,
        pool: Object,
        host: str,
        wanted: Sequence[Member],
        job: Job,
        run: Callable[[Host, Callable[[Progress], None]], Awaitable[Mapping[str, Outcome]]],
        *,
        what: str,
    ) -> Mapping[str, Outcome]:
        """Run a playbook while holding the host's lock; ``what`` it is, is said to those who wait meanwhile."""

        def waiting(now: str) -> None:
            job.waiting = f"waits for its turn on host {host}, which {now} has"
            self._services.loop.queue.add(reference(pool))

        def tell(progress: Progress) -> None:
            job.progress = members.Progress(progress.play, progress.task, progress.done, progress.total)
            self._services.loop.queue.add_after(reference(pool), PROGRESS_SECONDS)

        self._touched(host)
        try:
            target = await poolspec.reached(pool, host, self._services.cluster)
            async with self._services.leases.hold(target.address, f"JailPool {name(pool)}, {what}", waiting):
                job.waiting = ""
                return await run(target, tell)
        except ConfigurationError as error:
            problem = ProviderFailure(Reason.PLAYBOOK_FAILED, str(error))
            return {member.name: Outcome(problem) for member in wanted}
        except ClusterError as error:
            problem = ProviderFailure(Reason.CANCELLED, f"host {host}: {error}; it is tried again")
            return {member.name: Outcome(problem) for member in wanted}
        finally:
            self._touched(host)

    def _the_provider(self) -> Provider:
        if self._provider is None:
            raise ValueError("asked to install members before they are placed")
        return self._provider


def _member(pool: Object, place: Place) -> Member:
    machine = poolspec.machine(pool, place.ordinal, place.image)
    return Member(name(pool), place.name, place.ordinal, place.host, place.address, machine)
