# SPDX-License-Identifier: BSD-2-Clause
"""Reconciles a share of a pool: which release each of its members gets, and what its pipelines say of it.

What one namespace does, refuses or holds back has no effect here on another one: a share knows its own members,
definitions and rollout only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import bundles, enforcement, members, pool_status, releases, rollout, rollout_status
from shai_operator.reconcile.bundles import Bundle, Release
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.objects import name
from shai_operator.reconcile.pool_plan import CompareBundles, StoreRelease
from shai_operator.reconcile.rollout_state import Decision, Member, Situation, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.pool_plan import Observed
    from shai_operator.reconcile.releases import Definitions
    from shai_operator.reconcile.shares import Share
    from shai_operator.reconcile.upkeep import Kept


@dataclass
class ShareReconciliation:
    """One reconciliation of one share. ``staying`` are its members that should exist."""

    share: Share
    staying: Sequence[Observation]
    definitions: Definitions
    observed: Observed
    now: datetime
    releases: dict[str, Release] = field(init=False)
    """The releases that are stored, and the one that is wanted."""
    decision: Decision = field(init=False)

    def __post_init__(self) -> None:
        """Decide about the rollout."""
        made = self.definitions.release
        self._too_large = _too_large(self.share, made, self.observed)
        self.releases = dict(self.observed.releases)
        if made is not None and not self._too_large:
            self.releases[made.name] = made
        self._stable = self.releases.get(self.share.stable)
        self.decision = self._decide()

    def bundle(self, release: str) -> Bundle | None:
        """Return a release with the present facts of the namespace; None when it is not known."""
        found = self.releases.get(release)
        if found is None or (self.definitions.incomplete and found.of_kind("Pipeline")):
            return None
        return Bundle(found, self.definitions.facts)

    def wanted(self, member: Observation) -> Bundle | None:
        """Return the bundle that a member should have in force; None: the one that it has.

        A member that does not take it, for whatever reason, runs nothing rather than what the pool does not allow: the
        facts of the namespace, and what else is in the bundle, are its authors'.
        """
        bundle = self.bundle(self.decision.targets.get(member.name, ""))
        nothing = enforcement.empty_bundle(self.share.pool)
        if bundle is None or bundle.label not in member.refused or member.release in {"", nothing.release.name}:
            return bundle
        running = self.releases.get(member.release)
        # What is not known may be what the pool does not allow.
        return nothing if running is None or releases.forbidden(self.share, running) else bundle

    @property
    def newest(self) -> str:
        """The release that its members have when nothing is under way."""
        return self.decision.state.candidate or self.decision.stable

    @property
    def guarded(self) -> frozenset[str]:
        """Members of which one has to stay ready, for comparison with the stable release; empty: nothing needs it."""
        targets = self.decision.targets
        if not self.decision.state.candidate or len(set(targets.values())) < 2:  # noqa: PLR2004 - both releases
            return frozenset()
        return frozenset(member for member, release in targets.items() if release == self.decision.stable)

    @property
    def needed(self) -> frozenset[str]:
        """The releases that have to be kept."""
        state = self.decision.state
        return frozenset({self.decision.stable, self.decision.rejected, state.candidate, state.superseded} - {""})

    def unstored(self) -> Iterator[StoreRelease]:
        """Yield the releases to store before the status names them."""
        needed = {self.decision.stable, self.decision.state.candidate, *self.decision.targets.values()}
        for release in sorted(needed & (self.releases.keys() - self.observed.releases.keys())):
            yield StoreRelease(self.releases[release])

    def comparison(self, installing: set[str]) -> Iterator[CompareBundles]:
        """Yield the comparison that the decision needs, unless its member is about to be installed."""
        wanted = self.decision.comparison
        bundle = self.bundle(wanted.candidate) if wanted else None
        if wanted is not None and bundle is not None and wanted.member not in installing:
            yield CompareBundles(self.share.tenant.name, wanted.member, wanted.before, bundle)

    def entry(self, kept: Sequence[Kept]) -> dict[str, Any]:
        """Return what the pool's status keeps of this."""
        written = {
            "stableRelease": self.decision.stable,
            "candidateRelease": self.decision.state.candidate,
            "rejectedRelease": self.decision.rejected,
        }
        described = pool_status.describe(kept, self.decision)
        return {key: value for key, value in written.items() if value} | {"rollout": described}

    def outlook(self, kept: Sequence[Kept]) -> rollout_status.Outlook:
        """Return what the statuses of the namespace's pipelines and policies say."""
        decision, stable = self.decision, self.bundle(self.decision.stable)
        concerned = decision.state.candidate or (decision.rejected if decision.reject else "")
        monitors = [entry.member.monitor for entry in kept if entry.member.monitor]
        return rollout_status.Outlook(
            pool=name(self.share.pool),
            decision=decision,
            stable=stable.release if stable else None,
            candidate=self.releases.get(concerned),
            members=sum(1 for entry in kept if entry.standing.ready and entry.member.release),
            wanted=len(kept),
            behind=sum(1 for entry in kept if entry.member.release not in ("", decision.stable)),
            described=pool_status.describe(kept, decision),
            hash=next((monitor.hash for monitor in monitors if stable and monitor.bundle == stable.label), ""),
            effect=self._effect,
        )

    @property
    def _effect(self) -> Any:
        return self.observed.effects.get(self.share.tenant.name)

    def _decide(self) -> Decision:
        share, made, stable = self.share, self.definitions.release, self._stable
        running = releases.in_force(share, self.observed.releases)
        held = share.stable or (running.name if running else "")
        desired = held if made is None or self._too_large else made.name
        changed = bundles.changed_policies(stable, made) if stable and made else ()
        decision = rollout.decide(
            Situation(
                stable=share.stable,
                desired=desired,
                rejected=share.rejected,
                state=self._state(),
                members=[self._view(member, desired) for member in self.staying],
                settings=releases.settings(self.definitions, changed),
                now=self.now,
                effect=self._effect,
                refusal=self.observed.comparison_refusals.get(desired, ""),
                pipelines=frozenset(map(name, made.of_kind("Pipeline"))) if made else frozenset(),
                changed=changed,
                held=self.definitions.held,
                withdrawal=stable is not None and made is not None and bundles.withdraws(stable, made),
                first=not share.stable or (stable is not None and not stable.of_kind("Pipeline")),
            )
        )
        if self._too_large:
            return replace(decision, condition=Condition("RolledOut", FALSE, "TooLarge", self._too_large))
        return decision

    def _state(self) -> State:
        """Return the state of the rollout, without a candidate that is now forbidden."""
        state = self.share.state
        candidates = [
            self.releases[release] for release in (state.candidate, state.superseded) if release in self.releases
        ]
        return State() if any(releases.forbidden(self.share, release) for release in candidates) else state

    def _view(self, member: Observation, candidate: str) -> Member:
        """Return a member in the form that a rollout needs."""
        standing = members.standing(member, self.releases, "")
        label = Bundle(self._stable, self.definitions.facts).label if self._stable else ""
        return Member(
            name=member.name,
            ordinal=member.ordinal,
            release=member.release,
            ready=standing.ready,
            answers=member.monitor is not None,
            late=member.late,
            comparable=label != "" and member.monitor is not None and member.monitor.bundle == label,
            refuses_stable=self._stable is not None and _rejects(member, label) and member.release != self._stable.name,
            message=standing.told,
            refusal=self._refusal(member, candidate),
            samples=member.samples,
        )

    def _refusal(self, member: Observation, release: str) -> str:
        """Return a member's message when it refused a release; empty when it did not, or when the facts are the cause.

        The facts are not the cause if some member has accepted the same facts with another release.
        """
        bundle = self.bundle(release)
        if bundle is None or member.release == release or not _rejects(member, bundle.label):
            return ""
        taken = {other.monitor.bundle for other in self.staying if other.monitor}
        facts = bundles.label_parts(bundle.label)[1]
        proven = self._stable is None or facts in {bundles.label_parts(label)[1] for label in taken}
        return member.refused[bundle.label].message if proven else ""


def _rejects(member: Observation, label: str) -> bool:
    """Whether a member refuses a bundle because of what it contains."""
    return label in member.refused and not member.refused[label].passing


def _too_large(share: Share, made: Release | None, observed: Observed) -> str:
    """Say why the wanted release cannot be stored; empty when it can be, or is stored already."""
    if made is None or made.name in observed.releases:
        return ""
    try:
        bundles.store(made, share.pool, "")
    except bundles.ReleaseError as error:
        return str(error)
    return ""
