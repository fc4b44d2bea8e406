# SPDX-License-Identifier: BSD-2-Clause
"""Rolls a changed release out over a pool's members, and back.

What a pool's members run changes in steps. A candidate is first compared with what is in force;
then the first members get it (the canaries), and are judged against the others before more follow.
Everything that the next decision needs is in `State`, which the pool's status keeps, so that an
operator that has crashed goes on where it stood.
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
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from shai_operator.reconcile.judging import Judgement, Usage

__all__ = ["Decision", "Event", "Member", "NeedComparison", "Situation", "State", "Step", "decide"]

PROGRESS_SECONDS = 600
"""A step's members have so long to get ready with the candidate, from the step's beginning."""
INTERRUPTIONS_ALLOWED = 3
"""How often a step's members may stop being ready while they are watched."""
LOOK_SECONDS = 10.0
"""How often figures are looked at again while they are waited for."""
_NAMED = 5
"""Members that a message names."""


def decide(situation: Situation) -> Decision:
    """Take the next step. In a situation in which nothing has changed, it changes nothing."""
    it = replace(situation, now=situation.now.replace(microsecond=0))  # as precise as the status
    if it.desired in ("", it.stable, it.rejected):
        return _settled(it)
    if it.withdrawal or not it.members:
        return _promoted(it, "nothing had to be tried" if it.members else "the pool has no members")
    if it.first or _nowhere(it):
        return _first(it)
    state = it.state if it.state.candidate == it.desired else _supersede(it)
    if state.step == 0:
        return _gate(it, state)
    return _step(it, state)


def _settled(it: Situation) -> Decision:
    """Nothing is to be rolled out: every member belongs on the stable release."""
    rolled_back = it.desired == it.rejected != "" or bool(it.held)
    state = State(message=it.state.message if rolled_back else "")
    if rolled_back:
        which = f"policies {', '.join(it.held[:_NAMED])}" if it.held else "the last change"
        message = it.state.message or f"{which}: rolled back; change the spec to try again"
        condition = Condition("RolledOut", FALSE, "RolledBack", message)
    else:
        message = "all members are to have the stable release" if it.stable else "there is nothing to run"
        condition = Condition("RolledOut", TRUE, "Complete", message)
    return Decision(
        state=state,
        stable=it.stable,
        rejected=it.rejected if rolled_back else "",
        targets=_targets(it, it.stable),
        condition=condition,
        verdict="RollBack" if rolled_back else "Promote",
    )


def _promoted(it: Situation, message: str) -> Decision:
    """Make the desired release the stable one."""
    return Decision(
        state=State(),
        stable=it.desired,
        rejected="",
        targets=_targets(it, it.desired),
        condition=Condition("RolledOut", TRUE, "Complete", f"the change is in force: {message}"),
        verdict="Promote",
        steps=it.state.step,
        events=(Event(NORMAL, "RolledOut", f"{it.desired} is the stable release: {message}"),),
    )


def _first(it: Situation) -> Decision:
    """Give everybody the first release at once: it can neither close a flow nor slow a session down."""
    begun = it.state.candidate == it.desired and it.state.step > 0
    state = it.state if begun else State(candidate=it.desired, step=1, since=it.now)
    state = replace(state, canaries=tuple(one.name for one in it.members))
    waiting = [one for one in it.members if not _arrived(one, it)]
    if not waiting or (len(waiting) < len(it.members) and _overdue(it, state) and _blameless(waiting, it)):
        return _promoted(it, f"{count(len(it.members) - len(waiting), 'member', IS_READY, of=len(it.members))} with it")
    refused = [one for one in waiting if one.refusal]
    message = f"{count(len(it.members) - len(waiting), 'member', IS_READY, of=len(it.members))} with the first release"
    message += f"; {refused[0].name} refuses it: {refused[0].refusal}" if refused else f"; {_unready(waiting)}"
    return _under_way(it, state, "Progressing", message, it.members)


def _supersede(it: Situation) -> State:
    """Begin with another candidate. Canaries keep the old one meanwhile, so that they change only once.

    One member at least is left to the stable release: somebody has to be compared with.
    """
    old = it.state
    most = min(_count(it, 1), len(it.members) - 1) if old.candidate else 0
    kept = _present(old.canaries, it)[:most]
    had = old.superseded if old.step == 0 else old.candidate
    return State(candidate=it.desired, superseded=had if kept else "", canaries=kept, since=it.now)


def _gate(it: Situation, state: State) -> Decision:
    """Compare the candidate with what is in force, and start when it closes no more than it may."""
    state = replace(state, canaries=_present(state.canaries, it))
    if it.refusal:
        return _roll_back(it, f"the monitor refuses it: {it.refusal}")
    if it.effect is None or (it.effect.before, it.effect.after) != (it.stable, it.desired):
        return _compare(it, state)
    closed, flows = it.effect.closed_share(it.pipelines)
    limit = it.settings.limits.closed_percent
    if closed * 100 > limit * flows:
        message = (
            f"the change is not rolled out: it closes {closed} of {flows} flows that are open now, and "
            f"spec.rollout.limits.closedPercent allows {limit} %; status.effect lists them. Correct the change, or "
            "raise the limit"
        )
        held = replace(state, superseded="", canaries=())
        return _under_way(it, held, "BlocksFlows", message, (), warn=True)
    if it.settings.paused:
        message = f"spec.rollout.paused holds the change back: {it.effect.summary()}"
        return _under_way(it, state, "Paused", message, ())
    begun = _step(it, _enter(it, state, 1))
    return replace(begun, events=(Event(NORMAL, "RolloutBegun", f"{it.desired}: {it.effect.summary()}"), *begun.events))


def _compare(it: Situation, state: State) -> Decision:
    able = [one for one in it.members if one.comparable and one.name not in state.canaries]
    if not able:
        message = f"no member has the stable release, to compare the change with; {_unready(it.members)}"
        return _under_way(it, state, "Progressing", message, ())
    able.sort(key=lambda one: not one.ready)
    made = _under_way(it, state, "Progressing", "the change is being compared with what is in force", ())
    return replace(made, comparison=NeedComparison(able[0].name, it.stable, it.desired))


def _enter(it: Situation, state: State, step: int) -> State:
    """Begin a step with as many canaries as it has; those that there are stay."""
    canaries = _choose(it, _present(state.canaries, it), _count(it, step))
    before = _before(it) if step == 1 else state.before
    return State(candidate=it.desired, step=step, canaries=canaries, since=it.now, before=before)


def _step(it: Situation, state: State) -> Decision:
    """Bring a step forward: its members get ready, are watched, are judged."""
    state = _resize(it, state)
    canaries = [one for one in it.members if one.name in state.canaries]
    if it.settings.paused:
        message = f"spec.rollout.paused holds the change at {_where(it, state)}"
        return _under_way(it, state, "Paused", message, canaries)
    refused = [one for one in canaries if one.refusal]
    if refused:
        return _roll_back(it, f"{refused[0].name} refuses it: {refused[0].refusal}")
    waiting = [one for one in canaries if not _arrived(one, it)]
    harmless = not waiting or (len(waiting) < len(canaries) and _blameless(waiting, it))
    if state.watched_since and not harmless:
        state = replace(state, watched_since=None, since=it.now, interruptions=state.interruptions + 1)
        if state.interruptions > INTERRUPTIONS_ALLOWED:
            return _roll_back(it, f"members that have it do not stay ready; {_unready(waiting)}")
    if waiting and not state.watched_since:
        if not _overdue(it, state):
            ready = count(len(canaries) - len(waiting), "member", IS_READY, of=len(canaries))
            message = f"{_where(it, state)}: {ready} with it; {_unready(waiting)}"
            return _under_way(it, state, "Progressing", message, canaries)
        if not harmless:
            minutes = PROGRESS_SECONDS // 60
            return _roll_back(it, f"its members did not get ready within {minutes} minutes; {_unready(waiting)}")
    return _watch(it, state, canaries)


def _watch(it: Situation, state: State, canaries: Sequence[Member]) -> Decision:
    """Let the pause of a step pass, then judge."""
    began = state.watched_since or it.now
    state = replace(state, watched_since=began)
    left = (began + timedelta(seconds=_settings_step(it, state.step).pause_seconds) - it.now).total_seconds()
    if left > 0:
        watched = count(len(canaries), "member", ("is watched", "are watched"))
        message = f"{_where(it, state)}: {watched} for {left:.0f} s more"
        return replace(_under_way(it, state, "Progressing", message, canaries), look_again=left)
    judgement, others = _judge(it, state, canaries, began)
    if judgement.verdict == judging.ROLL_BACK:
        return _roll_back(it, judgement.message)
    if judgement.verdict == judging.INCONCLUSIVE:
        message = f"{_where(it, state)}: {judgement.message}; or lower spec.rollout.limits.minimumSessions"
        return replace(_under_way(it, state, "Inconclusive", message, canaries), verdict=judgement.verdict)
    if _is_last(it, state.step):
        return _promoted(it, judgement.message)
    following = replace(_enter(it, state, _next(it, state.step)), before=others)
    canaries = [one for one in it.members if one.name in following.canaries]
    message = f"{_where(it, state)} has passed: {judgement.message}"
    return replace(_under_way(it, following, "Progressing", message, canaries, tell=True), verdict=judgement.verdict)


def _judge(it: Situation, state: State, canaries: Sequence[Member], began: datetime) -> tuple[Judgement, Usage]:
    """Judge a step; return also what the change was compared with."""
    changed = judging.total(judging.usage(one.samples, it.desired, began) for one in canaries)
    rest = [one for one in it.members if one.name not in state.canaries and one.ready and one.release == it.stable]
    others = judging.total(judging.usage(one.samples, it.stable, began) for one in rest) if rest else state.before
    return judging.judge(changed, others, concurrent=bool(rest), limits=it.settings.limits), others


def _roll_back(it: Situation, why: str) -> Decision:
    """Reject the candidate; every member goes back to the stable release."""
    policies = f" Rejected revisions of: {', '.join(it.changed[:_NAMED])}." if it.changed else ""
    message = (
        f"the change was rolled back: {why}.{policies} What was in force before is in force; change the spec to try "
        "again"
    )
    return Decision(
        state=State(message=message),
        stable=it.stable,
        rejected=it.desired,
        targets=_targets(it, it.stable),
        condition=Condition("RolledOut", FALSE, "RolledBack", message),
        verdict=judging.ROLL_BACK,
        events=(Event(WARNING, "RolledBack", message),),
        reject=it.changed,
    )


def _under_way(
    it: Situation,
    state: State,
    reason: str,
    message: str,
    changed: Collection[Member],
    *,
    warn: bool = False,
    tell: bool = False,
) -> Decision:
    """Describe a rollout that is not over: ``changed`` members get the candidate, the others stay as they are."""
    targets = _targets(it, it.stable)
    if state.superseded:
        targets |= dict.fromkeys(state.canaries, state.superseded)
    targets |= {one.name: it.desired for one in changed}
    new = message != it.state.message
    told = (Event(WARNING if warn else NORMAL, reason, message),) if new and (warn or tell) else ()
    return Decision(
        state=replace(state, message=message),
        stable=it.stable,
        rejected="",
        targets=targets,
        condition=Condition("RolledOut", FALSE, reason, message),
        steps=_last(it),
        events=told,
        look_again=LOOK_SECONDS,
    )


def _targets(it: Situation, release: str) -> dict[str, str]:
    return {one.name: release for one in it.members}


# Members and steps.


def _arrived(one: Member, it: Situation) -> bool:
    return one.ready and one.release == it.desired


def _nowhere(it: Situation) -> bool:
    """Whether the stable release, promoted in a pool without members, is one that every member refuses."""
    return all(one.refuses_stable for one in it.members)


def _overdue(it: Situation, state: State) -> bool:
    return state.since is not None and it.now - state.since > timedelta(seconds=PROGRESS_SECONDS)


def _blameless(waiting: Sequence[Member], it: Situation) -> bool:
    """Whether what is wrong with these members cannot come from the candidate: they never had it."""
    return all(not one.answers and one.release != it.desired for one in waiting)


def _unready(members: Sequence[Member]) -> str:
    named = [f"{one.name}: {one.message or 'is being changed'}" for one in members[:_NAMED]]
    more = len(members) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _present(names: Sequence[str], it: Situation) -> tuple[str, ...]:
    there = {one.name for one in it.members}
    return tuple(one for one in names if one in there)


def _choose(it: Situation, canaries: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Cut canaries down, or add members: ready ones first, then those that answer, by ordinal."""
    others = [one for one in it.members if one.name not in canaries]
    others.sort(key=lambda one: (not one.ready, not one.answers, one.ordinal))
    return (*canaries, *(one.name for one in others))[:count]


def _resize(it: Situation, state: State) -> State:
    """Follow a pool that has been scaled meanwhile. While paused, no member is added."""
    canaries = _present(state.canaries, it)
    count = _count(it, state.step)
    if len(canaries) >= count or it.settings.paused:
        return replace(state, canaries=canaries[:count])
    return replace(state, canaries=_choose(it, canaries, count), since=it.now, watched_since=None)


def _settings_step(it: Situation, step: int) -> Step:
    steps = it.settings.steps
    return steps[min(step, len(steps)) - 1]


def _count(it: Situation, step: int) -> int:
    size = len(it.members)
    return size if step >= len(it.settings.steps) else _settings_step(it, step).count(size)


def _is_last(it: Situation, step: int) -> bool:
    return _count(it, step) == len(it.members)


def _next(it: Situation, step: int) -> int:
    """Return the next step that has more members than this one: in a small pool several may have as many."""
    following = step + 1
    while _count(it, following) <= _count(it, step):
        following += 1
    return following


def _last(it: Situation) -> int:
    last = 1
    while not _is_last(it, last):
        last += 1
    return last


def _where(it: Situation, state: State) -> str:
    return f"step {min(state.step, _last(it))} of {_last(it)}"


def _before(it: Situation) -> Usage:
    """Add up what members did with the stable release, as far back as is known."""
    return judging.total(judging.usage(one.samples, it.stable) for one in it.members)
