# SPDX-License-Identifier: BSD-2-Clause
"""Reconciles a pool: its members, whose they are, their bundles, and its status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import (
    assignment,
    enforcement,
    machine_status,
    machines,
    member_rows,
    members,
    orphans,
    pool_deletion,
    pool_status,
    rollout_status,
    shares,
    tenancy,
    tenants,
    upkeep,
)
from shai_operator.reconcile.actions import WARNING, Emit, Requeue, SetFinalizer, SetStatus
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.members import ApplyBundle, Observation
from shai_operator.reconcile.objects import FINALIZER, deleting, finalizers, name, spec, status
from shai_operator.reconcile.pool_plan import (
    CompareBundles,
    ForgetReleases,
    Observed,
    PoolAction,
    PoolPlan,
    StoreRelease,
)
from shai_operator.reconcile.share_reconciliation import ShareReconciliation
from shai_operator.reconcile.upkeep import Kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from shai_operator.reconcile.bundles import Bundle, Release
    from shai_operator.reconcile.machines import Replacements
    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.releases import Definitions
    from shai_operator.reconcile.shares import Share
    from shai_operator.reconcile.surveys import HostSurvey
    from shai_operator.reconcile.tenants import Tenant
    from shai_operator.reconcile.upkeep import Care

__all__ = [
    "CompareBundles",
    "ForgetReleases",
    "Observed",
    "PoolAction",
    "PoolPlan",
    "StoreRelease",
    "care",
    "judged",
    "observations",
    "ordinals",
    "reconcile",
    "replacements",
]


def observations(pool: Object, inventory: Inventory, stored: Mapping[str, Release]) -> dict[str, Observation]:
    """Return the members that the rows of a pool's status describe, with what the pool allows their namespaces."""
    owner = shares.former(pool, inventory, stored)
    may = tenancy.allowed(pool, inventory, stored)
    found = {}
    for row in status(pool).get("members") or ():
        member = member_rows.from_row(row)
        tenant = owner or member.tenant
        why = tenancy.withdrawal(pool, tenant, may, inventory)
        found[member.name] = replace(member, tenant=tenant, withdrawn=why)
    return found


def judged(
    pool: Object, known: Mapping[str, Observation], served: Mapping[Tenant, Share], wanted: Mapping[Tenant, Definitions]
) -> dict[str, Observation]:
    """Return members with the reasons why they are not used: their machine's enforcement, or data of somebody else."""
    own = {
        tenant: shares.named(share.kept)
        | {built.release.name for built in (wanted.get(tenant),) if built is not None and built.release is not None}
        for tenant, share in served.items()
    }
    found = enforcement.judged(pool, known.values())
    return assignment.judged(pool, found.values(), own)


def care(pool: Object) -> Care:
    """Return a pool's settings for the treatment of its members."""
    return upkeep.care(spec(pool), machines.jails(pool) if machines.has_machines(pool) else None)


def replacements(
    pool: Object, known: Mapping[str, Observation], surveys: Mapping[str, HostSurvey], image: str
) -> Replacements:
    """Decide which virtual machines are replaced; ``image`` is that of the spec, empty when it is not known."""
    return machines.decide(pool, known.values(), surveys, image, care(pool))


def ordinals(pool: Object, known: Mapping[str, Observation], replacements: Replacements) -> tuple[int, ...]:
    """Return the ordinals of the members that should exist, without those that are drained, held or given up."""
    held = replacements.held | assignment.discarded(pool, known.values())
    return upkeep.ordinals(care(pool), known.values(), held, replacements.surge)


def reconcile(pool: Object, observed: Observed, inventory: Inventory, now: datetime) -> PoolPlan:
    """Decide the next step for a pool, including the rollout status of its pipelines and policies."""
    if deleting(pool):
        return pool_deletion.reconcile(pool, observed, now)
    return _Reconciliation(pool, observed, inventory, now).plan()


class _Reconciliation:
    """One reconciliation of one pool."""

    def __init__(self, pool: Object, observed: Observed, inventory: Inventory, now: datetime) -> None:
        self._pool = pool
        self._observed = observed
        self._inventory = inventory
        self._now = now
        self._care = care(pool)
        self._ordinals = ordinals(pool, observed.members, observed.replacements)
        self._moved: list[PoolAction] = []
        """Actions that report members that were given up. They come before the status that no longer has them."""
        self._claims = tenancy.claims(pool, inventory, observed.releases)
        self._staying = assignment.assigned(pool, self._stay(), self._claims, observed.places.keys())
        self._shares = {
            tenant: ShareReconciliation(share, self._of(tenant), observed.definitions[tenant], observed, now)
            for tenant, share in observed.shares.items()
            if tenant in observed.definitions
        }
        self._releases = dict(observed.releases)
        for share in self._shares.values():
            self._releases |= share.releases
        self._kept = [self._keep(member) for member in self._staying]
        self._leaving = self._leave()

    def plan(self) -> PoolPlan:
        """Decide, and order the actions so that a crash between two of them loses nothing."""
        removals = list(upkeep.remove(self._leaving, self._care, self._now, self._ordinals))
        self._leaving = upkeep.forget_configuration(self._leaving, removals)
        leaving = [(member, members.standing(member, self._releases, "")) for member in self._leaving]
        all_members = [(entry.member, entry.standing) for entry in self._kept] + leaving
        trouble = self._trouble()
        replaced, surveys = self._observed.replacements, self._observed.surveys
        known = [member for member, _ in all_members]
        wanted = {member.ordinal for member in known} | set(self._ordinals)
        found = orphans.find(self._pool, surveys, wanted, self._care.jails, self._inventory)
        decisions = {tenant: share.decision for tenant, share in self._shares.items()}
        outlooks = {tenant: share.outlook(self._kept_of(tenant)) for tenant, share in self._shares.items()}
        pool_state = pool_status.write(
            self._pool,
            self._kept,
            leaving,
            decisions,
            namespaces=self._namespaces(leaving),
            trouble=trouble,
            machines=replaced.condition,
            now=self._now,
        )
        pool_state |= machine_status.write(self._pool, known, surveys, replaced, found)
        plan = PoolPlan(tracks={one.name: its.tracks for one, its in decisions.items() if its.tracks is not None})
        if FINALIZER not in finalizers(self._pool):
            plan.add(SetFinalizer(self._pool, present=True))
        plan.add(*orphans.forget(self._pool, found), *assignment.forget(self._pool, self._observed.members.values()))
        for tenant, share in self._shares.items():
            plan.add(*share.unstored(), *rollout_status.rejections(outlooks[tenant], self._inventory, self._now))
        plan.add(*self._moved, SetStatus(self._pool, pool_status.WRITER, pool_state), *removals, *self._jobs())
        for tenant, share in self._shares.items():
            plan.add(*rollout_status.statuses(outlooks[tenant], share.definitions, self._inventory, self._now))
        served = {tenant.name for tenant in self._observed.shares}
        plan.add(*rollout_status.taken_back(self._pool, served, self._inventory))
        plan.add(*pool_status.events(self._pool, all_members, decisions, trouble), *self._unserved())
        plan.add(
            *machine_status.events(self._pool, surveys, replaced, found),
            *orphans.removals(self._pool, found, surveys),
        )
        plan.add(*self._forgotten())
        waits = [upkeep.waits(known, self._care, self._now), *(its.look_again for its in decisions.values())]
        plan.add(*(Requeue(seconds) for seconds in waits if seconds is not None))
        return plan

    def _stay(self) -> list[Observation]:
        """Return the members that should exist, including new ones.

        A member's data do not move to another host. If its host has left the pool, the member is given up when nothing
        that ends by itself is done on it any more, and created again at the next reconciliation. So it is with one that
        was still to be installed there: nobody knows how far that came.
        """
        staying = []
        known = {member.ordinal: member for member in self._observed.members.values()}
        for ordinal in self._ordinals:
            place = self._observed.places.get(ordinal)
            member = known.get(ordinal) or Observation(f"{name(self._pool)}-{ordinal}", ordinal)
            member = replace(member, draining_since=None)
            if place is None or member.host == place.host:
                staying.append(member if place is None else replace(member, address=place.address))
            elif member.busy(*upkeep.ENDING_JOBS):
                staying.append(member)
            elif member.host:
                self._moved += pool_deletion.give_up(self._pool, member, "its host is off spec.hosts, or gone")
            else:
                staying.append(replace(member, host=place.host, address=place.address))
        return staying

    def _leave(self) -> list[Observation]:
        gone = [
            member
            for member in self._observed.members.values()
            if member.ordinal not in self._ordinals and (member.host or member.busy())
        ]
        return [replace(member, draining_since=member.draining_since or self._now) for member in gone]

    def _of(self, tenant: Tenant) -> list[Observation]:
        return [member for member in self._staying if member.tenant == tenant]

    def _kept_of(self, tenant: Tenant) -> list[Kept]:
        return [entry for entry in self._kept if entry.member.tenant == tenant]

    def _keep(self, member: Observation) -> Kept:
        bundle, newest = self._wanted(member)
        place = self._observed.places.get(member.ordinal)
        if place is not None and place.host != member.host:
            place = None  # something is still done on it where it was
        image = self._observed.replacements.image(member.ordinal // self._care.jails)
        return Kept(
            member=member,
            standing=members.standing(member, self._releases, bundle.label if bundle else ""),
            place=replace(place, image=image) if place else None,
            digest=self._observed.configurations.get(member.name, ""),
            bundle=bundle,
            newest=newest,
        )

    def _wanted(self, member: Observation) -> tuple[Bundle | None, str]:
        """Return the bundle that a member should have (None: the one that it has), and the release at the end.

        This is the one place that says what a member gets: of its own namespace, as long as the pool allows this.
        """
        empty = enforcement.empty_bundle(self._pool)
        if member.withdrawn:
            return empty, empty.release.name
        share = self._shares.get(member.tenant)
        if share is None:
            known = self._observed.shares.get(member.tenant)
            bundle, newest = None, known.candidate or known.stable if known else ""
        else:
            bundle, newest = share.wanted(member), share.newest
        return (empty if member.insufficient else bundle), newest

    def _namespaces(self, leaving: Sequence[tuple[Observation, members.Standing]]) -> list[dict[str, Any]]:
        """Return the entries of the namespaces that have members, or may have them."""
        every = [*self._staying, *(member for member, _ in leaving)]
        withdrawn = {member.tenant: member.withdrawn for member in every if member.withdrawn}
        entries = []
        for tenant in (*self._observed.shares, *sorted(withdrawn.keys() - self._observed.shares.keys())):
            kept, share = self._kept_of(tenant), self._shares.get(tenant)
            entry = {"name": tenant.name, "uid": tenant.uid}
            if tenant in withdrawn:
                entry["withdrawn"] = withdrawn[tenant]
            elif share is not None:
                entry |= share.entry(kept)
            else:
                kept_before = self._observed.shares[tenant].kept
                entry |= {key: kept_before[key] for key in shares.KEPT if key in kept_before}
            entries.append(entry | pool_status.counts(kept, [one for one in leaving if one[0].tenant == tenant]))
        return entries[: shares.MOST]

    def _unserved(self) -> Iterator[Emit]:
        """Yield an event when a namespace with pipelines gets no member, because others have them all."""
        before = {entry.get("uid"): entry.get("replicas") for entry in status(self._pool).get("namespaces") or ()}
        if not self._kept or self._of(tenants.NOBODY):
            return
        for tenant, active in self._claims:
            if active and not self._of(tenant) and before.get(tenant.uid) != 0:
                message = (
                    f"namespace {tenant.name} has pipelines for the pool, and no member is left for it: raise "
                    "spec.replicas, or give up members of a namespace that may not use the pool any more"
                )
                yield Emit(self._pool, WARNING, "NoMembers", message)

    def _trouble(self) -> Condition | None:
        """Return the reason why no members can be made, as the condition Provisioned."""
        if self._observed.configuration_error is not None:
            return Condition("Provisioned", FALSE, *self._observed.configuration_error)
        if any(member.ordinal not in self._observed.places for member in self._staying):
            why = self._observed.unplaced or ("TooFewHosts", "the hosts of the pool take no more members")
            return Condition("Provisioned", FALSE, *why)
        return None

    def _jobs(self) -> Iterator[PoolAction]:
        guarded = [share.guarded for share in self._shares.values()]
        installing = set[str]()
        for installation in upkeep.provision(self._kept, self._care, guarded, self._now):
            installing |= {place.name for place in installation.members}
            yield installation
        for entry in self._kept:
            action = None if entry.member.name in installing else upkeep.serve(entry, self._now)
            if action is not None:
                yield action
        yield from self._of_leaving()
        for share in self._shares.values():
            yield from share.comparison(installing)

    def _of_leaving(self) -> Iterator[ApplyBundle]:
        """Yield what members that are being drained still get.

        New facts reach them, because a revocation has to hold for their sessions, too; and what their namespace may not
        run any more ends there, too.
        """
        for member in self._leaving:
            share = self._shares.get(member.tenant)
            bundle = enforcement.empty_bundle(self._pool) if member.withdrawn else None
            if bundle is None and share is not None:
                bundle = share.bundle(member.release)
            standing = members.standing(member, self._releases, "")
            action = upkeep.serve(Kept(member, standing, None, "", bundle), self._now)
            if isinstance(action, ApplyBundle):
                yield action

    def _forgotten(self) -> Iterator[ForgetReleases]:
        needed = {member.release for member in (*self._staying, *self._leaving)}
        needed |= {release for share in self._shares.values() for release in share.needed}
        waiting = [share for tenant, share in self._observed.shares.items() if tenant not in self._shares]
        needed |= {release for share in waiting for release in shares.named(share.kept)}
        if shares.releases_needed(self._pool) - needed:
            yield ForgetReleases(name(self._pool), frozenset(needed))
