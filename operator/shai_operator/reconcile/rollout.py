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
from shai_operator.reconcile.conditions import FALSE, TRUE, Condition, timestamp
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
from shai_operator.reconcile.rollout_steps import (
    NAMED,
    PROGRESS_SECONDS,
    after,
    arrived,
    blameless,
    choose,
    is_last,
    last,
    late,
    members_of,
    nowhere,
    overdue,
    present,
    resize,
    settings_of,
    unready,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from shai_operator.reconcile.judging import Usage

__all__ = ["Decision", "Event", "Member", "NeedComparison", "Situation", "State", "Step", "decide"]

INTERRUPTIONS_ALLOWED = 3
"""How often a step's members may stop being ready while they are watched."""
LOOK_SECONDS = 10.0
"""How often figures are read again while a step waits for them."""


def decide(situation: Situation) -> Decision:
    """Decide the next step. If nothing in the situation has changed, the decision is the same."""
    situation = replace(situation, now=situation.now.replace(microsecond=0))  # as precise as the status
    if situation.desired in ("", situation.stable, situation.rejected):
        return _settled(situation)
    if situation.withdrawal or not situation.members:
        return _promoted(situation, "nothing had to be tried" if situation.members else "the pool has no members")
    if situation.first or nowhere(situation):
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
        cause = f"policies {', '.join(situation.held[:NAMED])}" if situation.held else "the last change"
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
    waiting = [member for member in all_members if not arrived(member, situation)]
    ready = count(len(all_members) - len(waiting), "member", IS_READY, of=len(all_members))
    partly = len(waiting) < len(all_members)
    if not waiting or (partly and overdue(situation, state) and blameless(waiting, situation)):
        return _promoted(situation, f"{ready} with it")
    refused = [member for member in waiting if member.refusal]
    message = f"{ready} with the first release"
    message += f"; {_refuses(refused[0].name)}" if refused else f"; {unready(waiting)}"
    return _under_way(situation, state, "Progressing", message, all_members)


def _supersede(situation: Situation) -> State:
    """Start with another candidate; canaries change only once, when the new one has been compared.

    At least one member keeps the stable release, for comparison.
    """
    old = situation.state
    most = min(members_of(situation, 1), len(situation.members) - 1) if old.candidate else 0
    kept = present(old.canaries, situation)[:most]
    previous = old.superseded if old.step == 0 else old.candidate
    return State(candidate=situation.desired, superseded=previous if kept else "", canaries=kept, since=situation.now)


def _gate(situation: Situation, state: State) -> Decision:
    """Compare the candidate with the release in force, and start if it closes no more flows than the limit."""
    state = replace(state, canaries=present(state.canaries, situation))
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
        message = f"no member has the stable release, to compare the change with; {unready(situation.members)}"
        return _under_way(situation, state, "Progressing", message, ())
    able.sort(key=lambda member: not member.ready)
    made = _under_way(situation, state, "Progressing", "the change is being compared with what is in force", ())
    return replace(made, comparison=NeedComparison(able[0].name, situation.stable, situation.desired))


def _enter(situation: Situation, state: State, step: int) -> State:
    """Start a step with its number of canaries; present canaries stay."""
    canaries = choose(situation, present(state.canaries, situation), members_of(situation, step))
    before = _before(situation) if step == 1 else state.before
    return State(candidate=situation.desired, step=step, canaries=canaries, since=situation.now, before=before)


def _step(situation: Situation, state: State) -> Decision:
    """Continue a step: its members become ready, are watched, and are judged."""
    state = resize(situation, state)
    canaries = [member for member in situation.members if member.name in state.canaries]
    if situation.settings.paused:
        message = f"spec.rollout.paused holds the change at {where(situation, state)}"
        return _under_way(situation, state, "Paused", message, canaries)
    refused = [canary for canary in canaries if canary.refusal]
    if refused:
        return _roll_back(situation, _refuses(refused[0].name), refused[0].refusal)
    waiting = [canary for canary in canaries if not arrived(canary, situation)]
    if state.watched_since:
        waiting = [canary for canary in waiting if not late(canary, situation.desired)]
    harmless = not waiting or (len(waiting) < len(canaries) and blameless(waiting, situation))
    if state.watched_since and not harmless:
        state = replace(state, watched_since=None, since=situation.now, interruptions=state.interruptions + 1)
        if state.interruptions > INTERRUPTIONS_ALLOWED:
            return _roll_back(situation, f"members that have it do not stay ready; {unready(waiting)}")
    if waiting and not state.watched_since:
        if not overdue(situation, state):
            ready = count(len(canaries) - len(waiting), "member", IS_READY, of=len(canaries))
            message = f"{where(situation, state)}: {ready} with it; {unready(waiting)}"
            return _under_way(situation, state, "Progressing", message, canaries)
        if not harmless:
            minutes = PROGRESS_SECONDS // 60
            return _roll_back(situation, f"its members did not get ready within {minutes} minutes; {unready(waiting)}")
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
    ends = began + timedelta(seconds=settings_of(situation, state.step).pause_seconds)
    left = (ends - situation.now).total_seconds()
    if left > 0:
        watched = count(len(canaries), "member", ("is watched", "are watched"))
        # Not how long that is from now: each second would be another message, in every status that has it.
        message = f"{where(situation, state)}: {watched} until {timestamp(ends)}"
        return replace(_under_way(situation, state, "Progressing", message, canaries), look_again=left)
    slow = [canary for canary in canaries if late(canary, situation.desired)]
    if slow:
        message = f"{where(situation, state)}: waits for answers; {unready(slow)}"
        return _under_way(situation, state, "Progressing", message, canaries)
    limits = situation.settings.limits
    judgement = judging.judge(tracks.canary, tracks.stable, concurrent=concurrent, limits=limits)
    if judgement.verdict == judging.ROLL_BACK:
        return _roll_back(situation, judgement.message)
    if judgement.verdict == judging.INCONCLUSIVE:
        message = f"{where(situation, state)}: {judgement.message}; or lower spec.rollout.limits.minimumSessions"
        return replace(_under_way(situation, state, "Inconclusive", message, canaries), verdict=judgement.verdict)
    if is_last(situation, state.step):
        return _promoted(situation, judgement.message)
    following = replace(_enter(situation, state, after(situation, state.step)), before=tracks.stable)
    canaries = [member for member in situation.members if member.name in following.canaries]
    message = f"{where(situation, state)} has passed: {judgement.message}"
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
    serving = any(member.ready or late(member, situation.stable) for member in rest)
    if serving or others.sessions >= max(situation.settings.limits.minimum_sessions, 1):
        return Tracks(changed, others), True
    return Tracks(changed, state.before), False


def _refuses(who: str) -> str:
    # What is rolled out has passed the operator's own parser, so only the member can say what is wrong with it.
    return f"{who} refuses it, of which the JailPool's status says more"


def _roll_back(situation: Situation, why: str, detail: str = "") -> Decision:
    """Reject the candidate; every member gets the stable release again. Authors of pipelines read no ``detail``."""
    policies = f" Rejected revisions of: {', '.join(situation.changed[:NAMED])}." if situation.changed else ""
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
        steps=last(situation),
        events=events,
        look_again=LOOK_SECONDS,
    )


def _targets(situation: Situation, release: str) -> dict[str, str]:
    return {member.name: release for member in situation.members}


def _before(situation: Situation) -> Usage:
    """Add up the members' usage with the stable release, as far back as there are samples."""
    return judging.total(judging.usage(member.samples, situation.stable) for member in situation.members)
