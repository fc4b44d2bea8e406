# SPDX-License-Identifier: BSD-2-Clause
"""The steps of a rollout, and the members that take part in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.reconcile.rollout_state import Member, Situation, State, Step

PROGRESS_SECONDS = 600
"""The time in which a step's members have to become ready with the candidate, from the beginning of the step."""
LATE_ALLOWED = 2
"""How often in a row a member may be too slow to answer before it counts as one that does not serve. On a loaded
machine, members are late whatever they have in force."""
NAMED = 5
"""Members, or policies, that a message names at most."""


# Members.


def arrived(member: Member, situation: Situation) -> bool:
    """Whether a member serves the candidate."""
    return member.ready and member.release == situation.desired


def late(member: Member, release: str) -> bool:
    """Whether a member has a release in force and is slow to answer: what it does not say is not held against it."""
    return 0 < member.late <= LATE_ALLOWED and member.release == release


def nowhere(situation: Situation) -> bool:
    """Whether every member refuses the stable release, which may have been promoted in a pool without members."""
    return all(member.refuses_stable for member in situation.members)


def overdue(situation: Situation, state: State) -> bool:
    """Whether the members of a step have had their time to become ready."""
    return state.since is not None and situation.now - state.since > timedelta(seconds=PROGRESS_SECONDS)


def blameless(waiting: Sequence[Member], situation: Situation) -> bool:
    """Whether the candidate cannot be the cause of these members' failures, because they never had it."""
    return all(not member.answers and member.release != situation.desired for member in waiting)


def unready(members: Sequence[Member]) -> str:
    """Say why members are not ready, of the first few of them."""
    named = [f"{member.name}: {member.message or 'is being changed'}" for member in members[:NAMED]]
    more = len(members) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


# Canaries.


def present(names: Sequence[str], situation: Situation) -> tuple[str, ...]:
    """Return those of the names that members have."""
    known = {member.name for member in situation.members}
    return tuple(name for name in names if name in known)


def choose(situation: Situation, canaries: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Reduce the canaries, or add members: ready ones first, then those that answer, by ordinal."""
    others = [member for member in situation.members if member.name not in canaries]
    others.sort(key=lambda member: (not member.ready, not member.answers, member.ordinal))
    return (*canaries, *(member.name for member in others))[:size]


def resize(situation: Situation, state: State) -> State:
    """Adapt the canaries after the pool was scaled. While the rollout is paused, no member is added."""
    canaries, size = present(state.canaries, situation), members_of(situation, state.step)
    if len(canaries) >= size or situation.settings.paused:
        return replace(state, canaries=canaries[:size])
    more = choose(situation, canaries, size)
    return replace(state, canaries=more, since=situation.now, watched_since=None, counted_since=None)


# Steps, by their number from 1.


def settings_of(situation: Situation, step: int) -> Step:
    """Return what the spec says of a step; what is after the last one is as the last one."""
    steps = situation.settings.steps
    return steps[min(step, len(steps)) - 1]


def members_of(situation: Situation, step: int) -> int:
    """Return how many members have the candidate in a step; in the last one, all of them."""
    size = len(situation.members)
    return size if step >= len(situation.settings.steps) else settings_of(situation, step).count(size)


def is_last(situation: Situation, step: int) -> bool:
    """Whether all members have the candidate in a step."""
    return members_of(situation, step) == len(situation.members)


def after(situation: Situation, step: int) -> int:
    """Return the next step that has more members than this one; in a small pool steps may have the same number."""
    following = step + 1
    while members_of(situation, following) <= members_of(situation, step):
        following += 1
    return following


def last(situation: Situation) -> int:
    """Return the number of the last step."""
    step = 1
    while not is_last(situation, step):
        step += 1
    return step


def where(situation: Situation, state: State) -> str:
    """Return in words which step it is."""
    return f"step {min(state.step, last(situation))} of {last(situation)}"
