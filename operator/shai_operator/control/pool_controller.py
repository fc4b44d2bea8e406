# SPDX-License-Identifier: BSD-2-Clause
"""The controller of JailPools: it observes members, asks what to do, and does it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.control import poolspec
from shai_operator.control.deployer import Deployer
from shai_operator.control.ended_rollouts import EndedRollouts
from shai_operator.control.installer import Installer
from shai_operator.control.kinds import KindsMissingError
from shai_operator.control.member_observer import MemberObserver
from shai_operator.control.settled_definitions import settled, tell_missing
from shai_operator.control.surveying import PERIOD_SECONDS, Surveys
from shai_operator.metrics.samples import CANARY, STABLE, Sharing
from shai_operator.providers.interface import ConfigurationError, ImageMissingError, Reason
from shai_operator.reconcile import (
    addresses,
    bridges,
    members,
    neighbours,
    pool_status,
    pools,
    shares,
)
from shai_operator.reconcile.actions import Plan, SetStatus
from shai_operator.reconcile.members import Place
from shai_operator.reconcile.objects import FINALIZER, deleting, finalizers, spec
from shai_operator.reconcile.orphans import RemoveOrphans
from shai_operator.reconcile.pools import Observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.services import Services
    from shai_operator.control.settled_definitions import Settled
    from shai_operator.providers.interface import Surveyor
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.judging import Usage
    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object, Reference
    from shai_operator.reconcile.pools import PoolPlan
    from shai_operator.reconcile.tenants import Tenant


class PoolState:
    """The state of one pool in this process."""

    def __init__(self, services: Services, ref: Reference) -> None:
        self.members = MemberObserver(services.tls, lambda: services.loop.queue.add(ref))
        self.surveys = Surveys(services)
        self.installer = Installer(services, self.members, self.surveys.touched)
        self.deployer = Deployer(services, self.members)
        self.ended: dict[Tenant, EndedRollouts] = {}
        self.tracks: dict[str, dict[str, Usage]] = {}
        """By namespace: the figures of the step of a rollout that is watched."""
        self.tidy = False
        """Whether the releases that an earlier operator left behind have been deleted."""


class PoolController:
    """The controller of JailPools."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._states: dict[str, PoolState] = {}

    def members(self, pool: str) -> MemberObserver | None:
        """Return the observations of a pool's members, None before the first one."""
        state = self._states.get(pool)
        return None if state is None else state.members

    def tracks(self) -> dict[Sharing, Mapping[str, Usage]]:
        """Return by pool and namespace the usage on each side of the step that is watched."""
        return {
            Sharing(pool, space): usage for pool, state in self._states.items() for space, usage in state.tracks.items()
        }

    def ended_rollouts(self) -> dict[Sharing, Mapping[str, int]]:
        """Return by pool and namespace how many rollouts ended with each result."""
        found: dict[Sharing, Counter[str]] = defaultdict(Counter)
        for pool, state in self._states.items():
            for tenant, ended in state.ended.items():
                found[Sharing(pool, tenant.name)].update(ended.counts)
        return dict(found)

    async def close(self) -> None:
        """Stop observing members."""
        for state in self._states.values():
            await state.members.close()

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one pool; when it does not exist any more, stop observing its members."""
        inventory = self._services.loop.inventory
        pool = inventory.get(ref)
        if pool is None or (deleting(pool) and FINALIZER not in finalizers(pool)):
            state = self._states.pop(ref.name, None)
            if state is not None:
                state.surveys.stop()
                await state.members.close()
            return None
        strange = pool_status.of_unknown_provider(pool, self._services.providers, datetime.now(UTC))
        if strange is not None:
            await self._services.executor.execute(Plan([SetStatus(pool, pool_status.WRITER, strange)]))
            return None
        state = self._states.get(ref.name) or self._states.setdefault(ref.name, PoolState(self._services, ref))
        stored = await self._services.releases.named(shares.releases_needed(pool))
        self._note(pool, state)
        try:
            known = await settled(self._services, pool, stored)
        except KindsMissingError as error:
            await tell_missing(self._services, pool, error)
            return error.again_seconds
        rows = state.members.observations(pools.observations(pool, inventory, stored))
        self._look_at(pool, state, rows)
        if not state.members.all_looked_at():
            return None  # after the first observation the pool is reconciled again
        observed = await self._observe(pool, state, known, stored)
        if deleting(pool):
            state.installer.stop()
            state.surveys.stop()
        plan = pools.reconcile(pool, observed, inventory, datetime.now(UTC))
        state.tracks = _tracks(plan)
        again = self._survey(pool, state, observed, await self._carry_out(pool, state, plan, observed))
        if not state.tidy:
            await self._services.releases.forget(ref.name, shares.releases_needed(inventory.get(ref) or pool))
            state.tidy = True
        return min((seconds for seconds in (again, known.again_seconds) if seconds is not None), default=None)

    def _note(self, pool: Object, state: PoolState) -> None:
        """Count the rollouts that have ended since the last reconciliation."""
        known = shares.of(pool, self._services.loop.inventory)
        state.ended = {tenant: state.ended.get(tenant, EndedRollouts()) for tenant in known}
        for tenant, share in known.items():
            state.ended[tenant].note(share.kept)

    async def _observe(
        self, pool: Object, state: PoolState, settled: Settled, stored: Mapping[str, Release]
    ) -> Observed:
        known = state.members.observations(pools.observations(pool, self._services.loop.inventory, stored))
        rows = pools.judged(pool, known, settled.shares, settled.definitions)
        provider = self._services.providers[str(spec(pool).get("provider"))]
        surveys = state.surveys.found()
        current = {row.ordinal: row.host for row in rows.values() if row.host}
        configurations: dict[str, str] = {}
        image = ""
        problem = self._conflict(pool)
        try:
            image = await self._machine_image(pool)
        except ImageMissingError as error:
            problem = problem or (error.reason, str(error))
        replacements = pools.replacements(pool, rows, surveys, image)
        ordinals = pools.ordinals(pool, rows, replacements)
        placed = provider.place(poolspec.pool(pool, state.surveys.expected(), self._promised(pool)), ordinals, current)
        places = {
            member.ordinal: Place(member.name, member.ordinal, member.host, member.address) for member in placed.members
        }
        state.installer.placed(pool, provider, placed)
        try:
            if problem is None:
                configurations = await state.installer.configurations()
        except ImageMissingError as error:
            problem = Reason.IMAGE_MISSING, str(error)
        except ConfigurationError as error:
            problem = Reason.PLAYBOOK_FAILED, str(error)
        return Observed(
            shares=settled.shares,
            definitions=settled.definitions,
            releases=stored,
            members=rows,
            places=places,
            unplaced=(placed.failure.reason, placed.failure.message) if placed.failure else None,
            surveys=surveys,
            replacements=replacements,
            configurations=configurations,
            configuration_error=problem,
            effects=dict(state.deployer.effects),
            comparison_refusals=dict(state.deployer.comparison_refusals),
        )

    def _promised(self, pool: Object) -> Mapping[str, Mapping[str, int]]:
        """Return the memory of other pools' virtual machines that a placement has to leave on each host.

        Between this and `Installer.placed` nothing else runs, so two pools never choose by the same free memory.
        """
        placed = {called: state.installer.hosts_of_machines() for called, state in self._states.items()}
        return neighbours.promised(pool, self._services.loop.inventory, placed)

    def _conflict(self, pool: Object) -> tuple[str, str] | None:
        """Return reason and message when an older pool has the network that this one wants."""
        message = bridges.conflict(pool, self._services.loop.inventory)
        return (Reason.BRIDGE_CONFLICT, message) if message else None

    async def _machine_image(self, pool: Object) -> str:
        """Return the image of the pool's virtual machines with its checksum; empty when it has none."""
        surveyor = self._surveyor(pool)
        if surveyor is None:
            return ""
        wanted = str(spec(pool)["virtualMachine"]["image"])
        return await asyncio.to_thread(surveyor.machine_image, wanted, poolspec.existing_machines(pool))

    def _surveyor(self, pool: Object) -> Surveyor | None:
        return self._services.surveyors.get(str(spec(pool).get("provider")))

    def _survey(self, pool: Object, state: PoolState, observed: Observed, again: float | None) -> float | None:
        """Start the surveys that are due; return when to reconcile again, given when it has to be otherwise."""
        surveyor = self._surveyor(pool)
        if surveyor is None or deleting(pool):
            return again
        return min(again or PERIOD_SECONDS, state.surveys.look(pool, surveyor, observed.members))

    def _look_at(self, pool: Object, state: PoolState, rows: Mapping[str, Observation]) -> None:
        endpoints = {
            row.name: addresses.endpoint(pool, row.address)
            for row in rows.values()
            if row.address and row.configuration
        }
        state.members.look_at(endpoints, poolspec.period(pool))

    async def _carry_out(self, pool: Object, state: PoolState, plan: PoolPlan, observed: Observed) -> float | None:
        """Carry out a plan in order; jobs are only started."""
        # There is no event when a missing image appears.
        wait = None if observed.configuration_error is None else poolspec.period(pool)
        for action in plan.actions:
            match action:
                case pools.StoreRelease():
                    await self._services.releases.store(action.release, pool)
                case pools.ForgetReleases():
                    await self._services.releases.forget(action.pool, action.keep)
                case members.ProvisionMembers() | members.RemoveMembers() | members.ForgetMembers() | RemoveOrphans():
                    state.installer.carry_out(pool, action)
                case members.ApplyBundle():
                    state.deployer.apply(pool, action)
                case members.BringUp():
                    state.deployer.bring_up(pool, action, observed.members[action.member.name].monitor)
                case pools.CompareBundles():
                    state.deployer.compare(pool, action)
                case _:
                    after = await self._services.executor.execute(Plan([action]))
                    wait = after if wait is None else wait if after is None else min(wait, after)
        return wait


def _tracks(plan: PoolPlan) -> dict[str, dict[str, Usage]]:
    return {space: {STABLE: tracks.stable, CANARY: tracks.canary} for space, tracks in plan.tracks.items()}
