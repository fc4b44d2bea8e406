# SPDX-License-Identifier: BSD-2-Clause
"""Reconciles a pool: its members, their bundles, and its status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shai_operator.reconcile import (
    bundles,
    enforcement,
    machine_status,
    machines,
    members,
    orphans,
    pool_deletion,
    pool_status,
    releases,
    rollout,
    rollout_status,
    upkeep,
)
from shai_operator.reconcile.actions import Requeue, SetFinalizer, SetStatus
from shai_operator.reconcile.bundles import Bundle, Release
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.members import ApplyBundle, Observation
from shai_operator.reconcile.objects import FINALIZER, deleting, finalizers, name, spec, status
from shai_operator.reconcile.pool_plan import ForgetReleases, Observed, PoolAction, PoolPlan, StoreRelease
from shai_operator.reconcile.rollout_state import Decision, Member, Situation, State, read
from shai_operator.reconcile.upkeep import Kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from shai_operator.reconcile.machines import Replacements
    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.surveys import HostSurvey
    from shai_operator.reconcile.upkeep import Care

__all__ = [
    "ForgetReleases",
    "Observed",
    "PoolAction",
    "PoolPlan",
    "StoreRelease",
    "care",
    "observations",
    "ordinals",
    "reconcile",
    "releases_named",
    "replacements",
]


def releases_named(pool: Object) -> frozenset[str]:
    """Return the names of the releases that a reconciliation of the pool needs."""
    known = status(pool)
    state = read(known)
    fields = [str(known.get(field) or "") for field in ("stableRelease", "candidateRelease", "rejectedRelease")]
    return frozenset({*fields, state.candidate, state.superseded} - {""})


def observations(pool: Object) -> dict[str, Observation]:
    """Return the members that the rows of a pool's status describe."""
    return {row["name"]: members.from_row(row) for row in status(pool).get("members") or ()}


def care(pool: Object) -> Care:
    """Return a pool's settings for the treatment of its members."""
    return upkeep.care(spec(pool), machines.jails(pool) if machines.has_machines(pool) else None)


def replacements(
    pool: Object, known: Mapping[str, Observation], surveys: Mapping[str, HostSurvey], image: str
) -> Replacements:
    """Decide which virtual machines are replaced; ``image`` is that of the spec, empty when it is not known."""
    return machines.decide(pool, known.values(), surveys, image, care(pool))


def ordinals(pool: Object, known: Mapping[str, Observation], replacements: Replacements) -> tuple[int, ...]:
    """Return the ordinals of the members that should exist, without those that are drained or held."""
    return upkeep.ordinals(care(pool), known.values(), replacements.held, replacements.surge)


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
        self._definitions = observed.definitions
        self._too_large = _too_large(pool, observed)
        self._releases = dict(observed.releases)
        made = observed.definitions.release
        if made is not None and not self._too_large:
            self._releases[made.name] = made
        self._stable = self._releases.get(str(status(pool).get("stableRelease") or ""))

    def plan(self) -> PoolPlan:
        """Decide, and order the actions so that a crash between two of them loses nothing."""
        staying, moved = self._staying()
        leaving = self._leaving()
        decision = self._decide(staying)
        kept = [self._kept(member, decision) for member in staying]
        removals = list(upkeep.remove(leaving, self._care, self._now, self._ordinals))
        leaving = upkeep.forget_configuration(leaving, removals)
        leaving_members = [(member, members.standing(member, self._releases, "")) for member in leaving]
        outlook = self._outlook(kept, decision)
        trouble = self._trouble(staying)
        pool_state = pool_status.write(
            self._pool,
            kept,
            leaving_members,
            decision,
            namespace=self._definitions.namespace,
            trouble=trouble,
            machines=self._observed.replacements.condition,
            now=self._now,
        )
        all_members = [(entry.member, entry.standing) for entry in kept] + leaving_members
        known = [member for member, _ in all_members]
        wanted = {member.ordinal for member in known} | set(self._ordinals)
        found = orphans.find(self._pool, self._observed.surveys, wanted, self._care.jails, self._inventory)
        replaced = self._observed.replacements
        pool_state |= machine_status.write(self._pool, known, self._observed.surveys, replaced, found)
        plan = PoolPlan(tracks=decision.tracks)
        if FINALIZER not in finalizers(self._pool):
            plan.add(SetFinalizer(self._pool, present=True))
        plan.add(*orphans.forget(self._pool, found), *self._unstored(decision))
        plan.add(*rollout_status.rejections(outlook, self._inventory, self._now))
        plan.add(SetStatus(self._pool, pool_status.WRITER, pool_state))
        plan.add(*moved, *removals, *self._jobs(kept, leaving, decision))
        plan.add(*rollout_status.statuses(outlook, self._definitions, self._inventory, self._now))
        plan.add(*pool_status.events(self._pool, all_members, decision, trouble))
        plan.add(
            *machine_status.events(self._pool, self._observed.surveys, replaced, found),
            *orphans.removals(self._pool, found, self._observed.surveys),
        )
        plan.add(*self._forgotten(decision))
        for seconds in (
            decision.look_again,
            upkeep.waits([member for member, _ in all_members], self._care, self._now),
        ):
            if seconds is not None:
                plan.add(Requeue(seconds))
        return plan

    def _staying(self) -> tuple[list[Observation], list[PoolAction]]:
        """Return the members that should exist, including new ones, and the actions that report abandoned members.

        A member's data do not move to another host. If its host has left the pool, the member is abandoned, and created
        again at the next reconciliation.
        """
        staying, moved = [], list[PoolAction]()
        known = {member.ordinal: member for member in self._observed.members.values()}
        for ordinal in self._ordinals:
            place = self._observed.places.get(ordinal)
            member = known.get(ordinal) or Observation(f"{name(self._pool)}-{ordinal}", ordinal)
            member = replace(member, draining_since=None)
            busy = member.busy(*upkeep.ENDING_JOBS)
            if place is not None and member.host != place.host and (member.configuration or busy):
                if not busy:
                    moved += pool_deletion.give_up(self._pool, member, "its host is off spec.hosts, or gone")
                continue
            staying.append(member if place is None else replace(member, host=place.host, address=place.address))
        return staying, moved

    def _leaving(self) -> list[Observation]:
        gone = [
            member
            for member in self._observed.members.values()
            if member.ordinal not in self._ordinals and (member.host or member.busy())
        ]
        return [replace(member, draining_since=member.draining_since or self._now) for member in gone]

    def _decide(self, staying: Sequence[Observation]) -> Decision:
        known, made = status(self._pool), self._definitions.release
        stable = str(known.get("stableRelease") or "")
        running = releases.in_force(self._pool, self._observed.releases)
        held = stable or (running.name if running else "")
        desired = held if made is None or self._too_large or self._changes_hands(staying) else made.name
        compared = self._stable is not None and made is not None
        changed = bundles.changed_policies(self._stable, made) if self._stable and made else ()
        decision = rollout.decide(
            Situation(
                stable=stable,
                desired=desired,
                rejected=str(known.get("rejectedRelease") or ""),
                state=self._state(),
                members=[self._view(member, desired) for member in staying],
                settings=releases.settings(self._definitions, changed),
                now=self._now,
                effect=self._observed.effect,
                refusal=self._observed.comparison_refusals.get(desired, ""),
                pipelines=frozenset(pipeline["metadata"]["name"] for pipeline in made.of_kind("Pipeline"))
                if made
                else frozenset(),
                changed=changed,
                held=self._definitions.held,
                withdrawal=compared and bundles.withdraws(_existing(self._stable), _existing(made)),
                first=not stable or (self._stable is not None and not self._stable.of_kind("Pipeline")),
            )
        )
        if self._too_large:
            return replace(decision, condition=Condition("RolledOut", FALSE, "TooLarge", self._too_large))
        return decision

    def _state(self) -> State:
        """Return the state of the rollout, without a candidate that is now forbidden."""
        state = read(status(self._pool))
        candidates = [
            self._releases[release] for release in (state.candidate, state.superseded) if release in self._releases
        ]
        return State() if any(releases.forbidden(self._pool, release) for release in candidates) else state

    def _changes_hands(self, staying: Sequence[Observation]) -> bool:
        """Whether members still run the release of another namespace. They have to drop it first."""
        stable, made = self._stable, self._definitions.release
        if stable is None or made is None or stable.namespace == made.namespace:
            return False
        return any(member.monitor and member.release not in {"", stable.name, made.name} for member in staying)

    def _view(self, member: Observation, candidate: str) -> Member:
        """Return a member in the form that a rollout needs."""
        standing = members.standing(member, self._releases, "")
        return Member(
            name=member.name,
            ordinal=member.ordinal,
            release=member.release,
            ready=standing.ready,
            answers=member.monitor is not None,
            late=member.late,
            comparable=self._has(member, self._stable),
            refuses_stable=self._refuses(member, self._stable),
            message=standing.told,
            refusal=self._refusal(member, candidate),
            samples=member.samples,
        )

    def _refuses(self, member: Observation, release: Release | None) -> bool:
        label = Bundle(release, self._definitions.facts).label if release else ""
        return label in member.refused and member.release != _existing(release).name

    def _has(self, member: Observation, release: Release | None) -> bool:
        label = Bundle(release, self._definitions.facts).label if release else ""
        return member.monitor is not None and member.monitor.bundle == label != ""

    def _refusal(self, member: Observation, release: str) -> str:
        """Return a member's message when it refused a release; empty when it did not, or when the facts are the cause.

        The facts are not the cause if some member has accepted the same facts with another release.
        """
        bundle = self._bundle(release)
        if bundle is None or member.release == release or bundle.label not in member.refused:
            return ""
        taken = {other.monitor.bundle for other in self._observed.members.values() if other.monitor}
        facts = bundles.label_parts(bundle.label)[1]
        proven = self._stable is None or facts in {bundles.label_parts(label)[1] for label in taken}
        return member.refused[bundle.label].message if proven else ""

    def _kept(self, member: Observation, decision: Decision) -> Kept:
        bundle = self._bundle(decision.targets.get(member.name, ""))
        if member.insufficient:
            bundle = enforcement.empty_bundle(self._pool)
        place = self._observed.places.get(member.ordinal)
        image = self._observed.replacements.image(member.ordinal // self._care.jails)
        return Kept(
            member=member,
            standing=members.standing(member, self._releases, bundle.label if bundle else ""),
            place=replace(place, image=image) if place else None,
            digest=self._observed.configurations.get(member.name, ""),
            bundle=bundle,
        )

    def _bundle(self, release: str) -> Bundle | None:
        found = self._releases.get(release)
        if found is None or (self._definitions.incomplete and found.of_kind("Pipeline")):
            return None
        return Bundle(found, self._definitions.facts)

    def _outlook(self, kept: Sequence[Kept], decision: Decision) -> rollout_status.Outlook:
        stable = self._bundle(decision.stable)
        concerned = decision.state.candidate or (decision.rejected if decision.reject else "")
        monitors = [entry.member.monitor for entry in kept if entry.member.monitor]
        return rollout_status.Outlook(
            pool=name(self._pool),
            decision=decision,
            stable=stable.release if stable else None,
            candidate=self._releases.get(concerned),
            members=sum(1 for entry in kept if entry.standing.ready and entry.member.release),
            described=pool_status.describe(kept, decision),
            hash=next((monitor.hash for monitor in monitors if stable and monitor.bundle == stable.label), ""),
            effect=self._observed.effect,
        )

    def _trouble(self, staying: Sequence[Observation]) -> Condition | None:
        """Return the reason why no members can be made, as the condition Provisioned."""
        if self._observed.configuration_error is not None:
            return Condition("Provisioned", FALSE, *self._observed.configuration_error)
        if any(member.ordinal not in self._observed.places for member in staying):
            why = self._observed.unplaced or ("TooFewHosts", "the hosts of the pool take no more members")
            return Condition("Provisioned", FALSE, *why)
        return None

    def _jobs(self, kept: Sequence[Kept], leaving: Sequence[Observation], decision: Decision) -> Iterator[PoolAction]:
        stable_only = decision.state.candidate and len(set(decision.targets.values())) > 1
        guarded = (
            {member for member, release in decision.targets.items() if release == decision.stable}
            if stable_only
            else ()
        )
        installing = set()
        for installation in upkeep.provision(kept, self._care, guarded, self._now):
            installing |= {place.name for place in installation.members}
            yield installation
        for entry in kept:
            action = None if entry.member.name in installing else upkeep.serve(entry, self._now)
            if action is not None:
                yield action
        for member in leaving:
            # New facts also reach members that are being drained: a revocation has to hold for their sessions, too.
            bundle = self._bundle(member.release)
            standing = members.standing(member, self._releases, "")
            action = upkeep.serve(Kept(member, standing, None, "", bundle), self._now)
            if isinstance(action, ApplyBundle):
                yield action
        if decision.comparison is not None and decision.comparison.member not in installing:
            yield decision.comparison

    def _unstored(self, decision: Decision) -> Iterator[StoreRelease]:
        needed = {decision.stable, decision.state.candidate, *decision.targets.values()}
        for release in sorted(needed & (self._releases.keys() - self._observed.releases.keys())):
            yield StoreRelease(self._releases[release])

    def _forgotten(self, decision: Decision) -> Iterator[ForgetReleases]:
        needed = {decision.stable, decision.rejected, decision.state.candidate, decision.state.superseded} - {""}
        if releases_named(self._pool) - needed:
            yield ForgetReleases(name(self._pool), frozenset(needed))


def _existing(release: Release | None) -> Release:
    if release is None:
        raise LookupError("a release that was found before is missing")
    return release


def _too_large(pool: Object, observed: Observed) -> str:
    """Say why the wanted release cannot be stored; empty when it can be, or is stored already."""
    made = observed.definitions.release
    if made is None or made.name in observed.releases:
        return ""
    try:
        bundles.store(made, pool, "")
    except bundles.ReleaseError as error:
        return str(error)
    return ""
