# SPDX-License-Identifier: BSD-2-Clause
"""Rolls a changed release out over a pool's members, and back.

Members of a pool change their release in steps. A candidate is first compared with the release in force. Then the first
members (the canaries) get it, and are compared with the others before more members get it. `State` has everything that
the next decision needs. The pool's status keeps it, so that an operator that has crashed continues where it stopped.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from shai_operator.reconcile import judging
from shai_operator.reconcile.actions import NORMAL, WARNING
from shai_operator.reconcile.conditions import FALSE, TRUE, Condition
from shai_operator.reconcile.counts import IS_READY, count
from shai_operator.reconcile.rollout_state import (
    Decision,
    Event,
    Member,
    NeedComparison,
    Situation,
    State,
    Step,
    Tracks,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from shai_operator.reconcile.judging import Usage

__all__ = ["Decision", "Event", "Member", "NeedComparison", "Situation", "State", "Step", "decide"]

PROGRESS_SECONDS = 600
"""The time in which a step's members have to become ready with the candidate, from the beginning of the step."""
INTERRUPTIONS_ALLOWED = 3
"""How often a step's members may stop being ready while they are watched."""
LATE_ALLOWED = 2
"""How often in a row a member may be too slow to answer before it counts as one that does not serve. On a loaded
machine, members are late whatever they have in force."""
LOOK_SECONDS = 10.0
"""How often figures are read again while a step waits for them."""
_NAMED = 5
"""Members that a message names at most."""


def decide(situation: Situation) -> Decision:
    """Decide the next step. If nothing in the situation has changed, the decision is the same."""
    situation = replace(situation, now=situation.now.replace(microsecond=0))  # as precise as the status
    if situation.desired in ("", situation.stable, situation.rejected):
        return _settled(situation)
    if situation.withdrawal or not situation.members:
        return _promoted(situation, "nothing had to be tried" if situation.members else "the pool has no members")
    if situation.first or _nowhere(situation):
        return _first(situation)
    state = situation.state if situation.state.candidate == situation.desired else _supersede(situation)
    if state.step == 0:
        return _gate(situation, state)
    return _step(situation, state)


def _settled(situation: Situation) -> Decision:
    """There is nothing to roll out: every member should have the stable release."""
    rolled_back = situation.desired == situation.rejected != "" or bool(situation.held)
    state = State(message=situation.state.message, detail=situation.state.detail) if rolled_back else State()
    if rolled_back:
        cause = f"policies {', '.join(situation.held[:_NAMED])}" if situation.held else "the last change"
        message = situation.state.message or f"{cause}: rolled back; change the spec to try again"
        condition = Condition("RolledOut", FALSE, "RolledBack", message)
    else:
        message = "all members are to have the stable release" if situation.stable else "there is nothing to run"
        condition = Condition("RolledOut", TRUE, "Complete", message)
    return Decision(
        state=state,
        stable=situation.stable,
        rejected=situation.rejected if rolled_back else "",
        targets=_targets(situation, situation.stable),
        condition=condition,
        verdict="RollBack" if rolled_back else "Promote",
    )


def _promoted(situation: Situation, message: str) -> Decision:
    """Make the desired release the stable one."""
    return Decision(
        state=State(),
        stable=situation.desired,
        rejected="",
        targets=_targets(situation, situation.desired),
        condition=Condition("RolledOut", TRUE, "Complete", f"the change is in force: {message}"),
        verdict="Promote",
        steps=situation.state.step,
        events=(Event(NORMAL, "RolledOut", f"{situation.desired} is the stable release: {message}"),),
    )


def _first(situation: Situation) -> Decision:
    """Give all members the first release at once: it can neither close a flow nor slow a session down."""
    begun = situation.state.candidate == situation.desired and situation.state.step > 0
    state = situation.state if begun else State(candidate=situation.desired, step=1, since=situation.now)
    all_members = situation.members
    state = replace(state, canaries=tuple(member.name for member in all_members))
    waiting = [member for member in all_members if not _arrived(member, situation)]
    ready = count(len(all_members) - len(waiting), "member", IS_READY, of=len(all_members))
    partly = len(waiting) < len(all_members)
    if not waiting or (partly and _overdue(situation, state) and _blameless(waiting, situation)):
        return _promoted(situation, f"{ready} with it")
    refused = [member for member in waiting if member.refusal]
    message = f"{ready} with the first release"
    message += f"; {_refuses(refused[0].name)}" if refused else f"; {_unready(waiting)}"
    return _under_way(situation, state, "Progressing", message, all_members)


def _supersede(situation: Situation) -> State:
    """Start with another candidate; canaries change only once, when the new one has been compared.

    At least one member keeps the stable release, for comparison.
    """
    old = situation.state
    most = min(_count(situation, 1), len(situation.members) - 1) if old.candidate else 0
    kept = _present(old.canaries, situation)[:most]
    previous = old.superseded if old.step == 0 else old.candidate
    return State(candidate=situation.desired, superseded=previous if kept else "", canaries=kept, since=situation.now)


def _gate(situation: Situation, state: State) -> Decision:
    """Compare the candidate with the release in force, and start if it closes no more flows than the limit."""
    state = replace(state, canaries=_present(state.canaries, situation))
    if situation.refusal:
        return _roll_back(situation, _refuses("the monitor"), situation.refusal)
    if situation.effect is None or (situation.effect.before, situation.effect.after) != (
        situation.stable,
        situation.desired,
    ):
        return _compare(situation, state)
    closed, flows = situation.effect.closed_share(situation.pipelines)
    limit = situation.settings.limits.closed_percent
    if closed * 100 > limit * flows:
        message = (
            f"the change is not rolled out: it closes {closed} of {flows} flows that are open now, and "
            f"spec.rollout.limits.closedPercent allows {limit} %; status.effect lists them. Correct the change, or "
            "raise the limit"
        )
        held = replace(state, superseded="", canaries=())
        return _under_way(situation, held, "BlocksFlows", message, (), warn=True)
    if situation.settings.paused:
        message = f"spec.rollout.paused holds the change back: {situation.effect.summary()}"
        return _under_way(situation, state, "Paused", message, ())
    begun = _step(situation, _enter(situation, state, 1))
    return replace(
        begun,
        events=(Event(NORMAL, "RolloutBegun", f"{situation.desired}: {situation.effect.summary()}"), *begun.events),
    )


def _compare(situation: Situation, state: State) -> Decision:
    able = [member for member in situation.members if member.comparable and member.name not in state.canaries]
    if not able:
        message = f"no member has the stable release, to compare the change with; {_unready(situation.members)}"
        return _under_way(situation, state, "Progressing", message, ())
    able.sort(key=lambda member: not member.ready)
    made = _under_way(situation, state, "Progressing", "the change is being compared with what is in force", ())
    return replace(made, comparison=NeedComparison(able[0].name, situation.stable, situation.desired))


def _enter(situation: Situation, state: State, step: int) -> State:
    """Start a step with its number of canaries; present canaries stay."""
    canaries = _choose(situation, _present(state.canaries, situation), _count(situation, step))
    before = _before(situation) if step == 1 else state.before
    return State(candidate=situation.desired, step=step, canaries=canaries, since=situation.now, before=before)


def _step(situation: Situation, state: State) -> Decision:
    """Continue a step: its members become ready, are watched, and are judged."""
    state = _resize(situation, state)
    canaries = [member for member in situation.members if member.name in state.canaries]
    if situation.settings.paused:
        message = f"spec.rollout.paused holds the change at {_where(situation, state)}"
        return _under_way(situation, state, "Paused", message, canaries)
    refused = [canary for canary in canaries if canary.refusal]
    if refused:
        return _roll_back(situation, _refuses(refused[0].name), refused[0].refusal)
    waiting = [canary for canary in canaries if not _arrived(canary, situation)]
    if state.watched_since:
        waiting = [canary for canary in waiting if not _late(canary, situation.desired)]
    harmless = not waiting or (len(waiting) < len(canaries) and _blameless(waiting, situation))
    if state.watched_since and not harmless:
        state = replace(state, watched_since=None, since=situation.now, interruptions=state.interruptions + 1)
        if state.interruptions > INTERRUPTIONS_ALLOWED:
            return _roll_back(situation, f"members that have it do not stay ready; {_unready(waiting)}")
    if waiting and not state.watched_since:
        if not _overdue(situation, state):
            ready = count(len(canaries) - len(waiting), "member", IS_READY, of=len(canaries))
            message = f"{_where(situation, state)}: {ready} with it; {_unready(waiting)}"
            return _under_way(situation, state, "Progressing", message, canaries)
        if not harmless:
            minutes = PROGRESS_SECONDS // 60
            return _roll_back(situation, f"its members did not get ready within {minutes} minutes; {_unready(waiting)}")
    return _watch(situation, state, canaries)


def _watch(situation: Situation, state: State, canaries: Sequence[Member]) -> Decision:
    """Wait for the pause of a step, then judge."""
    began = state.watched_since or situation.now
    state = replace(state, watched_since=began, counted_since=state.counted_since or began)
    tracks, concurrent = _compared(situation, state, canaries)
    return replace(_judged(situation, state, canaries, tracks, concurrent=concurrent), tracks=tracks)


def _judged(
    situation: Situation, state: State, canaries: Sequence[Member], tracks: Tracks, *, concurrent: bool
) -> Decision:
    began = state.watched_since or situation.now
    left = (
        began + timedelta(seconds=_settings_step(situation, state.step).pause_seconds) - situation.now
    ).total_seconds()
    if left > 0:
        watched = count(len(canaries), "member", ("is watched", "are watched"))
        message = f"{_where(situation, state)}: {watched} for {left:.0f} s more"
        return replace(_under_way(situation, state, "Progressing", message, canaries), look_again=left)
    slow = [canary for canary in canaries if _late(canary, situation.desired)]
    if slow:
        message = f"{_where(situation, state)}: waits for answers; {_unready(slow)}"
        return _under_way(situation, state, "Progressing", message, canaries)
    limits = situation.settings.limits
    judgement = judging.judge(tracks.canary, tracks.stable, concurrent=concurrent, limits=limits)
    if judgement.verdict == judging.ROLL_BACK:
        return _roll_back(situation, judgement.message)
    if judgement.verdict == judging.INCONCLUSIVE:
        message = f"{_where(situation, state)}: {judgement.message}; or lower spec.rollout.limits.minimumSessions"
        return replace(_under_way(situation, state, "Inconclusive", message, canaries), verdict=judgement.verdict)
    if _is_last(situation, state.step):
        return _promoted(situation, judgement.message)
    following = replace(_enter(situation, state, _next(situation, state.step)), before=tracks.stable)
    canaries = [member for member in situation.members if member.name in following.canaries]
    message = f"{_where(situation, state)} has passed: {judgement.message}"
    return replace(
        _under_way(situation, following, "Progressing", message, canaries, tell=True), verdict=judgement.verdict
    )


def _compared(situation: Situation, state: State, canaries: Sequence[Member]) -> tuple[Tracks, bool]:
    """Return the figures of a step, and whether both sides are of the same window.

    What members did before they stopped serving counts. If no other one serves, and they did too little to be compared
    with, the pool before the change takes their place: it may be what is in force that does not serve.
    """
    began = state.counted_since
    changed = judging.total(judging.usage(canary.samples, situation.desired, began) for canary in canaries)
    rest = [
        member
        for member in situation.members
        if member.name not in state.canaries and member.release == situation.stable
    ]
    others = judging.total(judging.usage(member.samples, situation.stable, began) for member in rest)
    serving = any(member.ready or _late(member, situation.stable) for member in rest)
    if serving or others.sessions >= max(situation.settings.limits.minimum_sessions, 1):
        return Tracks(changed, others), True
    return Tracks(changed, state.before), False


def _refuses(who: str) -> str:
    # What is rolled out has passed the operator's own parser, so only the member can say what is wrong with it.
    return f"{who} refuses it, of which the JailPool's status says more"


def _roll_back(situation: Situation, why: str, detail: str = "") -> Decision:
    """Reject the candidate; every member gets the stable release again. Authors of pipelines read no ``detail``."""
    policies = f" Rejected revisions of: {', '.join(situation.changed[:_NAMED])}." if situation.changed else ""
    message = (
        f"the change was rolled back: {why}.{policies} What was in force before is in force; change the spec to try "
        "again"
    )
    return Decision(
        state=State(message=message, detail=detail),
        stable=situation.stable,
        rejected=situation.desired,
        targets=_targets(situation, situation.stable),
        condition=Condition("RolledOut", FALSE, "RolledBack", message),
        verdict=judging.ROLL_BACK,
        events=(Event(WARNING, "RolledBack", f"{message}. {detail}" if detail else message),),
        reject=situation.changed,
    )


def _under_way(
    situation: Situation,
    state: State,
    reason: str,
    message: str,
    changed: Collection[Member],
    *,
    warn: bool = False,
    tell: bool = False,
) -> Decision:
    """Describe a rollout that is not over: ``changed`` members get the candidate, the others keep their release."""
    targets = _targets(situation, situation.stable)
    if state.superseded:
        targets |= dict.fromkeys(state.canaries, state.superseded)
    targets |= {member.name: situation.desired for member in changed}
    new = message != situation.state.message
    events = (Event(WARNING if warn else NORMAL, reason, message),) if new and (warn or tell) else ()
    return Decision(
        state=replace(state, message=message),
        stable=situation.stable,
        rejected="",
        targets=targets,
        condition=Condition("RolledOut", FALSE, reason, message),
        steps=_last(situation),
        events=events,
        look_again=LOOK_SECONDS,
    )


def _targets(situation: Situation, release: str) -> dict[str, str]:
    return {member.name: release for member in situation.members}


# Members and steps.


def _arrived(member: Member, situation: Situation) -> bool:
    return member.ready and member.release == situation.desired


def _late(member: Member, release: str) -> bool:
    """Whether a member has a release in force and is slow to answer: what it does not say is not held against it."""
    return 0 < member.late <= LATE_ALLOWED and member.release == release


def _nowhere(situation: Situation) -> bool:
    """Whether every member refuses the stable release, which may have been promoted in a pool without members."""
    return all(member.refuses_stable for member in situation.members)


def _overdue(situation: Situation, state: State) -> bool:
    return state.since is not None and situation.now - state.since > timedelta(seconds=PROGRESS_SECONDS)


def _blameless(waiting: Sequence[Member], situation: Situation) -> bool:
    """Whether the candidate cannot be the cause of these members' failures, because they never had it."""
    return all(not member.answers and member.release != situation.desired for member in waiting)


def _unready(members: Sequence[Member]) -> str:
    named = [f"{member.name}: {member.message or 'is being changed'}" for member in members[:_NAMED]]
    more = len(members) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _present(names: Sequence[str], situation: Situation) -> tuple[str, ...]:
    present = {member.name for member in situation.members}
    return tuple(name for name in names if name in present)


def _choose(situation: Situation, canaries: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Reduce the canaries, or add members: ready ones first, then those that answer, by ordinal."""
    others = [member for member in situation.members if member.name not in canaries]
    others.sort(key=lambda member: (not member.ready, not member.answers, member.ordinal))
    return (*canaries, *(member.name for member in others))[:count]


def _resize(situation: Situation, state: State) -> State:
    """Adapt the canaries after the pool was scaled. While the rollout is paused, no member is added."""
    canaries = _present(state.canaries, situation)
    count = _count(situation, state.step)
    if len(canaries) >= count or situation.settings.paused:
        return replace(state, canaries=canaries[:count])
    more = _choose(situation, canaries, count)
    return replace(state, canaries=more, since=situation.now, watched_since=None, counted_since=None)


def _settings_step(situation: Situation, step: int) -> Step:
    steps = situation.settings.steps
    return steps[min(step, len(steps)) - 1]


def _count(situation: Situation, step: int) -> int:
    size = len(situation.members)
    return size if step >= len(situation.settings.steps) else _settings_step(situation, step).count(size)


def _is_last(situation: Situation, step: int) -> bool:
    return _count(situation, step) == len(situation.members)


def _next(situation: Situation, step: int) -> int:
    """Return the next step that has more members than this one; in a small pool steps may have the same number."""
    following = step + 1
    while _count(situation, following) <= _count(situation, step):
        following += 1
    return following


def _last(situation: Situation) -> int:
    last = 1
    while not _is_last(situation, last):
        last += 1
    return last


def _where(situation: Situation, state: State) -> str:
    return f"step {min(state.step, _last(situation))} of {_last(situation)}"


def _before(situation: Situation) -> Usage:
    """Add up the members' usage with the stable release, as far back as there are samples."""
    return judging.total(judging.usage(member.samples, situation.stable) for member in situation.members)
