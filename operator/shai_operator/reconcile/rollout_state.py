# SPDX-License-Identifier: BSD-2-Clause
"""What a rollout looks at, where it stands, and what it decides; how that stands in a JailPool's status."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import MESSAGE_LIMIT, timestamp
from shai_operator.reconcile.judging import Limits, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.conditions import Condition
    from shai_operator.reconcile.effects import Effect
    from shai_operator.reconcile.members import Sample


@dataclass(frozen=True)
class Step:
    """So many members get the change, then they are watched."""

    members: int | str
    """A number, or a percentage ("25%") that is rounded up."""
    pause_seconds: int = 60

    def count(self, size: int) -> int:
        """Return how many of ``size`` members have the change after this step; at least one."""
        text = str(self.members)
        number = -(-size * int(text[:-1]) // 100) if text.endswith("%") else int(text)
        return min(max(number, 1), size)


@dataclass(frozen=True)
class Settings:
    """How changes reach a pool's members. The last step is always all members."""

    steps: tuple[Step, ...] = (Step(1), Step("100%"))
    limits: Limits = field(default_factory=Limits)
    paused: bool = False


@dataclass(frozen=True)
class Member:
    """What a rollout looks at in a member."""

    name: str
    ordinal: int
    release: str
    """Which release it has in force, or had when it last answered; empty: none."""
    ready: bool
    """Whether it serves ``release``, whole and now."""
    answers: bool
    comparable: bool = True
    """Whether it answers, and has the stable release in force with the facts of the moment."""
    refuses_stable: bool = False
    """Whether it has refused the stable release, and does not have it."""
    message: str = ""
    """Why it is not ready."""
    refusal: str = ""
    """What it said when it refused the candidate."""
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class State:
    """Where a rollout stands."""

    candidate: str = ""
    """The release that is being rolled out; empty: none."""
    superseded: str = ""
    """An earlier candidate that the canaries still have while this one is compared."""
    step: int = 0
    """Counted from 1; 0: it is being compared, or held back."""
    canaries: tuple[str, ...] = ()
    """The members that have the candidate, in the order in which they were chosen."""
    since: datetime | None = None
    """When the step began, or when its members last stopped being ready."""
    watched_since: datetime | None = None
    """The time since which all members of the step have been ready."""
    interruptions: int = 0
    before: Usage = field(default_factory=Usage)
    """What members without the change did before this step; the last step has nothing else to be compared with."""
    message: str = ""
    """The last verdict's, for people."""


@dataclass(frozen=True)
class Situation:
    """All that a decision rests on."""

    stable: str
    """The release in force on members that take part in no rollout; empty: none yet."""
    desired: str
    """What the specs say; empty: nothing to run."""
    rejected: str
    state: State
    members: Sequence[Member]
    """Members that are to stay, by ordinal; those that are being removed are not among them."""
    settings: Settings
    now: datetime
    effect: Effect | None = None
    refusal: str = ""
    """What the monitor said when it refused to compare the candidate; not that it did not answer."""
    pipelines: frozenset[str] = frozenset()
    """The pipelines of the candidate."""
    changed: tuple[str, ...] = ()
    """The policies of which the candidate has another revision than the stable release."""
    held: tuple[str, ...] = ()
    """Policies whose newest revision has been rejected."""
    withdrawal: bool = False
    """The candidate only leaves out what the stable release has."""
    first: bool = False
    """The stable release has no pipelines, or there is none: nothing that a candidate could do harm to."""


@dataclass(frozen=True)
class NeedComparison:
    """The candidate has to be compared, by the monitor of this member, with what it has in force."""

    member: str
    before: str
    candidate: str


@dataclass(frozen=True)
class Event:
    """Something to tell about."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True)
class Decision:
    """The decision that a situation leads to."""

    state: State
    stable: str
    rejected: str
    targets: Mapping[str, str]
    """The release that each member should have; empty: what it has."""
    condition: Condition
    """RolledOut."""
    verdict: str = "Pending"
    """Pending, Promote, Inconclusive or RollBack."""
    steps: int = 0
    events: tuple[Event, ...] = ()
    reject: tuple[str, ...] = ()
    """Policies whose candidate revision has to be rejected *before* ``state`` is written."""
    comparison: NeedComparison | None = None
    look_again: float | None = None
    """Seconds after which time alone may change the decision."""


def read(status: Mapping[str, Any]) -> State:
    """Read the state from a JailPool's status."""
    rollout = status.get("rollout") or {}
    return State(
        candidate=rollout.get("release", ""),
        superseded=rollout.get("superseded", ""),
        step=rollout.get("step", 0),
        canaries=tuple(rollout.get("canaries") or ()),
        since=_moment(rollout.get("since")),
        watched_since=_moment(rollout.get("watchedSince")),
        interruptions=rollout.get("interruptions", 0),
        before=Usage(**(rollout.get("before") or {})),
        message=rollout.get("message", ""),
    )


def write(state: State) -> dict[str, Any]:
    """Write the state for a JailPool's status.rollout; what is empty is left out."""
    written: dict[str, Any] = {
        "release": state.candidate,
        "superseded": state.superseded,
        "step": state.step,
        "canaries": list(state.canaries),
        "since": timestamp(state.since) if state.since else "",
        "watchedSince": timestamp(state.watched_since) if state.watched_since else "",
        "interruptions": state.interruptions,
        "before": asdict(state.before) if state.before != Usage() else None,
        "message": state.message[:MESSAGE_LIMIT],
    }
    return {key: value for key, value in written.items() if value or (key == "step" and state.candidate)}


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
