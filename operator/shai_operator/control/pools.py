# SPDX-License-Identifier: BSD-2-Clause
"""The controller of JailPools: looks at members, asks what to do, and has it done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.control import poolspec
from shai_operator.control.installing import Installing
from shai_operator.control.kinds import KindsMissingError
from shai_operator.control.members import Members
from shai_operator.control.putting import Putting
from shai_operator.providers.interface import ConfigurationError, ImageMissingError, Reason
from shai_operator.reconcile import definitions, members, pools, releases, tenancy
from shai_operator.reconcile.actions import WARNING, Emit, Plan
from shai_operator.reconcile.members import Place
from shai_operator.reconcile.objects import FINALIZER, deleting, finalizers, spec, status
from shai_operator.reconcile.pools import Observed
from shai_operator.reconcile.rollout_state import NeedComparison

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.authority import ClientTLS
    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Jobs
    from shai_operator.control.kinds import Kinds
    from shai_operator.control.leases import Leases
    from shai_operator.control.loop import Loop
    from shai_operator.control.releases import Releases
    from shai_operator.control.settings import Settings
    from shai_operator.control.verdicts import Verdicts
    from shai_operator.providers.interface import Provider
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object, Reference
    from shai_operator.reconcile.pools import PoolPlan
    from shai_operator.reconcile.releases import Definitions


SETTLE_SECONDS = 1.5
"""For how long definitions have to stay as they are before they are taken for a release."""


@dataclass(frozen=True)
class Surroundings:
    """What the controllers of pools work with."""

    settings: Settings
    loop: Loop
    cluster: Cluster
    executor: Executor
    verdicts: Verdicts
    kinds: Kinds
    releases: Releases
    leases: Leases
    jobs: Jobs
    providers: Mapping[str, Provider]
    tls: ClientTLS


class Crew:
    """What this process keeps of one pool."""

    def __init__(self, around: Surroundings, it: Reference) -> None:
        self.members = Members(around.tls, lambda: around.loop.queue.add(it))
        self.installing = Installing(around, self.members)
        self.putting = Putting(around, self.members)
        self.tidy = False
        """Whether releases have been dropped that an operator before this one had no time to drop."""


class Pools:
    """The controller of this kind."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._crews: dict[str, Crew] = {}

    def members(self, pool: str) -> Members | None:
        """Return what is seen of a pool's members, None before its first look."""
        crew = self._crews.get(pool)
        return None if crew is None else crew.members

    async def close(self) -> None:
        """Stop looking at members."""
        for crew in self._crews.values():
            await crew.members.close()

    async def reconcile(self, it: Reference) -> float | None:
        """Look at one pool; one that is gone is no longer looked at."""
        inventory = self._around.loop.inventory
        pool = inventory.get(it)
        if pool is None or (deleting(pool) and FINALIZER not in finalizers(pool)):
            crew = self._crews.pop(it.name, None)
            if crew is not None:
                await crew.members.close()
            return None
        crew = self._crews.get(it.name) or self._crews.setdefault(it.name, Crew(self._around, it))
        stored = await self._around.releases.named(pools.releases_named(pool))
        stable = stored.get(str(status(pool).get("stableRelease") or ""))
        served = tenancy.served_namespace(pool, stable)
        refused = definitions.refused(it.name, served, self._around.verdicts.found, inventory)
        if refused is None:
            return None  # a verdict is on its way, and has the pool looked at again
        try:
            built = releases.build(inventory, pool, refused, stable)
            changing = deleting(pool) or built.release != stable
            # Without its kind an object is missing, which leaves a pipeline out: people are told why.
            await self._around.kinds.check(changing=changing or bool(built.left_out))
        except KindsMissingError as error:
            await self._around.executor.execute(Plan([Emit(pool, WARNING, "KindMissing", str(error))]))
            if changing:
                return error.again_seconds
        if changing and (unsettled := self._unsettled(built.namespace)) > 0:
            return unsettled
        rows = crew.members.observations(pools.observations(pool))
        self._look_at(pool, crew, rows)
        if not crew.members.all_looked_at():
            return None  # the first look at them has the pool looked at again
        observed = await self._observe(pool, crew, built, stored)
        if deleting(pool):
            crew.installing.stop()
        plan = pools.reconcile(pool, observed, inventory, datetime.now(UTC))
        again = await self._carry_out(pool, crew, plan, observed)
        if not crew.tidy:
            await self._around.releases.forget(it.name, pools.releases_named(inventory.get(it) or pool))
            crew.tidy = True
        return again

    def _unsettled(self, namespace: str) -> float:
        """Return for how long more a namespace's definitions have to be left alone before they are taken.

        What a person applies together arrives one by one, and is meant to come into force together.
        """
        changed = self._around.loop.redefined.get(namespace, 0.0)
        return changed + SETTLE_SECONDS - time.monotonic()

    async def _observe(self, pool: Object, crew: Crew, built: Definitions, stored: Mapping[str, Release]) -> Observed:
        rows = crew.members.observations(pools.observations(pool))
        provider = self._around.providers[str(spec(pool).get("provider"))]
        current = {one.ordinal: one.host for one in rows.values() if one.host}
        placed = provider.place(poolspec.pool(pool), pools.ordinals(pool, rows), current)
        places = {one.ordinal: Place(one.name, one.ordinal, one.host, one.address) for one in placed.members}
        too_few = placed.failure.message if placed.failure else ""
        crew.installing.placed(pool, provider, placed)
        configurations: dict[str, str] = {}
        problem: tuple[str, str] | None = None
        try:
            configurations = await crew.installing.configurations()
        except ImageMissingError as error:
            problem = Reason.IMAGE_MISSING, str(error)
        except ConfigurationError as error:
            problem = Reason.PLAYBOOK_FAILED, str(error)
        return Observed(
            definitions=built,
            releases=stored,
            members=rows,
            places=places,
            too_few_hosts=too_few,
            configurations=configurations,
            configuration_error=problem,
            effect=crew.putting.effect,
            comparison_refusals=dict(crew.putting.comparison_refusals),
        )

    def _look_at(self, pool: Object, crew: Crew, rows: Mapping[str, Observation]) -> None:
        port = poolspec.port(pool)
        endpoints = {one.name: f"{one.address}:{port}" for one in rows.values() if one.address and one.configuration}
        crew.members.look_at(endpoints, poolspec.period(pool))

    async def _carry_out(self, pool: Object, crew: Crew, plan: PoolPlan, observed: Observed) -> float | None:
        """Carry out a plan in its order; jobs are only begun."""
        # Nobody tells when an image that was missing is there.
        wait = None if observed.configuration_error is None else poolspec.period(pool)
        for action in plan.actions:
            match action:
                case pools.StoreRelease():
                    await self._around.releases.store(action.release, pool)
                case pools.ForgetReleases():
                    await self._around.releases.forget(action.pool, action.keep)
                case members.ProvisionMembers():
                    crew.installing.provision(pool, action)
                case members.RemoveMembers():
                    crew.installing.remove(pool, action)
                case members.ForgetMembers():
                    crew.installing.give_up(action)
                case members.ApplyBundle():
                    crew.putting.apply(pool, action)
                case members.BringUp():
                    crew.putting.bring_up(pool, action, observed.members[action.member.name].monitor)
                case NeedComparison():
                    crew.putting.compare(pool, action, observed)
                case _:
                    after = await self._around.executor.execute(Plan([action]))
                    wait = after if wait is None else wait if after is None else min(wait, after)
        return wait
