# SPDX-License-Identifier: BSD-2-Clause
"""Judges a step of a rollout: compares members with the change to members without it.

Both are measured in the same window, so that a busy hour or an attack affects both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from shai_operator.reconcile.counts import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from shai_operator.reconcile.members import Sample

OVERHEAD_FLOOR_MICROSECONDS = 2000
"""Additional time for a session that is always allowed. Below it, a percentage says more about the clock than about the
change."""

PROMOTE, INCONCLUSIVE, ROLL_BACK = "Promote", "Inconclusive", "RollBack"


@dataclass(frozen=True)
class Usage:
    """The counters of some members in some window."""

    sessions: int = 0
    decisions: int = 0
    refusals: int = 0
    microseconds: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Add the counters of other members or of another window."""
        return Usage(
            self.sessions + other.sessions,
            self.decisions + other.decisions,
            self.refusals + other.refusals,
            self.microseconds + other.microseconds,
        )

    @property
    def denials(self) -> Fraction:
        """Denials among the decisions, 0 to 1."""
        return Fraction(self.refusals, self.decisions) if self.decisions else Fraction(0)

    @property
    def cost(self) -> Fraction:
        """The monitor's time for a session, in microseconds."""
        return Fraction(self.microseconds, self.sessions) if self.sessions else Fraction(0)


@dataclass(frozen=True)
class Limits:
    """The limits that a change has to keep, and the number of sessions that a verdict needs."""

    denials_percent: int = 5
    overhead_percent: int = 50
    closed_percent: int = 50
    minimum_sessions: int = 20


@dataclass(frozen=True)
class Judgement:
    """A verdict, and the figures on which it is based."""

    verdict: str
    message: str


def usage(samples: Sequence[Sample], release: str, since: datetime | None = None) -> Usage:
    """Add up a member's counters with a release, from ``since`` on.

    Two neighbouring samples count only if both have the release in force; a pair with a swap of bundles in between is
    left out, not estimated. If the monitor was started again in between, all that the new process has counted counts,
    because it began with 0. What the former one counted after its last sample is not known to anybody.
    """
    total = Usage()
    for first, last in pairwise(samples):
        if first.release == last.release == release and (since is None or first.at >= since):
            total += _difference(first, last)
    return total


def _difference(first: Sample, last: Sample) -> Usage:
    if first.started != last.started:
        return Usage(last.sessions, last.decisions, last.refusals, last.microseconds)
    change = (
        last.sessions - first.sessions,
        last.decisions - first.decisions,
        last.refusals - first.refusals,
        last.microseconds - first.microseconds,
    )
    # The process has changed between the two answers of which a sample is made: the next sample has all of it.
    return Usage(*change) if min(change) >= 0 else Usage()


def judge(changed: Usage, others: Usage, *, concurrent: bool, limits: Limits) -> Judgement:
    """Compare members with the change to ``others``.

    If ``concurrent``, the others are members without the change in the same window. Otherwise they are the pool before
    the change; waiting would then not give more data.
    """
    lacking = limits.minimum_sessions - changed.sessions
    if lacking > 0:
        return Judgement(
            INCONCLUSIVE, f"members with the change have to serve {count(lacking, 'more session')} to be judged"
        )
    lacking = limits.minimum_sessions - others.sessions
    if concurrent and lacking > 0:
        return Judgement(
            INCONCLUSIVE,
            f"members without the change have to serve {count(lacking, 'more session')} to be compared with",
        )
    against = "on members without it" if concurrent else "before it"
    if not others.sessions:
        against = "allowed for, since no sessions were seen before it"
    denials = (
        f"{_percent(changed.denials)} of decisions are denials with the change, {_percent(others.denials)} {against}"
    )
    if (changed.denials - others.denials) * 100 > limits.denials_percent:
        return Judgement(
            ROLL_BACK, f"{denials}; spec.rollout.limits allows {count(limits.denials_percent, 'point')} more"
        )
    cost = f"the monitor takes {_milliseconds(changed.cost)} for a session, {_milliseconds(others.cost)} {against}"
    if others.sessions and _too_dear(changed, others, limits):
        return Judgement(ROLL_BACK, f"{cost}; spec.rollout.limits allows {limits.overhead_percent} % more")
    return Judgement(PROMOTE, f"{denials}; {cost}" if others.sessions else denials)


def _too_dear(changed: Usage, others: Usage, limits: Limits) -> bool:
    more = changed.cost - others.cost
    return more > OVERHEAD_FLOOR_MICROSECONDS and more * 100 > others.cost * limits.overhead_percent


def _percent(share: Fraction) -> str:
    return f"{float(share * 100):.1f} %"


def _milliseconds(microseconds: Fraction) -> str:
    return f"{float(microseconds / 1000):.2f} ms"


def total(usages: Iterable[Usage]) -> Usage:
    """Add up the usage of several members."""
    return sum(usages, Usage())
