# SPDX-License-Identifier: BSD-2-Clause
"""The situation, the state and the decision of a rollout, and the state's form in a JailPool's status."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.judging import Limits, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.conditions import Condition
    from shai_operator.reconcile.effects import Effect
    from shai_operator.reconcile.members import Sample

MESSAGE_LIMIT = 1024
"""Characters of what a status says of a rollout. A JailPool has rollouts of some hundred namespaces, and no object is
larger than about 1.5 MB."""


@dataclass(frozen=True)
class Step:
    """One step: this many members get the change, then they are watched."""

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
    """The properties of a member that a rollout uses."""

    name: str
    ordinal: int
    release: str
    """The release that the member has in force, or had when it last answered; empty: none."""
    ready: bool
    """Whether the member serves ``release`` completely."""
    answers: bool
    late: int = 0
    """How often in a row the member was too slow to answer; 0 when it answered, or was not there."""
    comparable: bool = True
    """Whether the member answers, and has the stable release in force with the present facts."""
    refuses_stable: bool = False
    """Whether the member has refused the stable release, and does not have it."""
    message: str = ""
    """Why the member is not ready."""
    refusal: str = ""
    """The message with which the member refused the candidate."""
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class State:
    """The state of a rollout."""

    candidate: str = ""
    """The release that is being rolled out; empty: none."""
    superseded: str = ""
    """An earlier candidate that the canaries keep while the new one is compared."""
    step: int = 0
    """The number of the step, from 1; 0: the candidate is being compared, or is held back."""
    canaries: tuple[str, ...] = ()
    """The members that have the candidate, in the order in which they were chosen."""
    since: datetime | None = None
    """When the step started, or when its members last stopped being ready."""
    watched_since: datetime | None = None
    """When all members of the step became ready."""
    counted_since: datetime | None = None
    """When they became ready for the first time in this step. What they have done since counts, also if they were
    started again meanwhile and are watched anew."""
    interruptions: int = 0
    before: Usage = field(default_factory=Usage)
    """The usage of members without the change before this step. The last step has nothing else to compare with."""
    message: str = ""
    """The message of the last verdict, for people."""
    detail: str = ""
    """What a member's monitor said that refused the release, if this is why it was rolled back. Not for authors of
    pipelines: a monitor can say what it likes, such as what it knows of its host."""


@dataclass(frozen=True)
class Situation:
    """The input of a decision."""

    stable: str
    """The release in force on members outside of the rollout; empty: none yet."""
    desired: str
    """The release that follows from the specs; empty: there is nothing to run."""
    rejected: str
    state: State
    members: Sequence[Member]
    """Members that stay, by ordinal, without those that are being removed."""
    settings: Settings
    now: datetime
    effect: Effect | None = None
    refusal: str = ""
    """The monitor's message when it refused to compare the candidate; empty when it did not answer."""
    pipelines: frozenset[str] = frozenset()
    """The pipelines of the candidate."""
    changed: tuple[str, ...] = ()
    """The policies that have another revision in the candidate than in the stable release."""
    held: tuple[str, ...] = ()
    """Policies whose newest revision has been rejected."""
    withdrawal: bool = False
    """The candidate only removes manifests of the stable release."""
    first: bool = False
    """There is no stable release, or it has no pipelines, so the candidate can do no harm."""


@dataclass(frozen=True)
class NeedComparison:
    """A request to have the monitor of this member compare the candidate with its release in force."""

    member: str
    before: str
    candidate: str


@dataclass(frozen=True)
class Event:
    """An event to record."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True)
class Tracks:
    """The usage on both sides of a step while it is watched."""

    canary: Usage
    """Of the members with the change."""
    stable: Usage
    """Of the members without it; in the last step, of all members before it."""


@dataclass(frozen=True)
class Decision:
    """The decision for a situation."""

    state: State
    stable: str
    rejected: str
    targets: Mapping[str, str]
    """The release that each member should have; empty: the one that it has."""
    condition: Condition
    """The condition RolledOut."""
    verdict: str = "Pending"
    """One of Pending, Promote, Inconclusive and RollBack."""
    steps: int = 0
    events: tuple[Event, ...] = ()
    reject: tuple[str, ...] = ()
    """Policies whose candidate revision has to be rejected *before* ``state`` is written."""
    comparison: NeedComparison | None = None
    tracks: Tracks | None = None
    """The figures of the step that is watched; None: none is."""
    look_again: float | None = None
    """Seconds until the decision may change without any other change; None: time alone changes nothing."""


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
        counted_since=_moment(rollout.get("countedSince")),
        interruptions=rollout.get("interruptions", 0),
        before=Usage(**(rollout.get("before") or {})),
        message=rollout.get("message", ""),
        detail=rollout.get("detail", ""),
    )


def write(state: State) -> dict[str, Any]:
    """Return the state for a JailPool's status.rollout; empty fields are left out."""
    written: dict[str, Any] = {
        "release": state.candidate,
        "superseded": state.superseded,
        "step": state.step,
        "canaries": list(state.canaries),
        "since": timestamp(state.since) if state.since else "",
        "watchedSince": timestamp(state.watched_since) if state.watched_since else "",
        "countedSince": timestamp(state.counted_since) if state.counted_since else "",
        "interruptions": state.interruptions,
        "before": asdict(state.before) if state.before != Usage() else None,
        "message": state.message[:MESSAGE_LIMIT],
        "detail": state.detail[:MESSAGE_LIMIT],
    }
    return {key: value for key, value in written.items() if value or (key == "step" and state.candidate)}


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
