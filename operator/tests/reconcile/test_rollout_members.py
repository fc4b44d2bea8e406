# SPDX-License-Identifier: BSD-2-Clause
"""What happens to members during a rollout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shai_operator.reconcile import rollout, rollout_steps
from shai_operator.reconcile.judging import Usage
from shai_operator.reconcile.members import Sample
from tests.reconcile.rollouts import (
    NOW,
    first_step,
    judged,
    member,
    samples,
    seconds,
    situation,
    watched,
)

if TYPE_CHECKING:
    from shai_operator.reconcile.rollout_state import Member


def test_a_member_that_refuses_the_change_ends_it() -> None:
    decision = rollout.decide(situation(member(0, refusal="line 3: no such policy"), member(1), state=first_step()))
    assert decision.verdict == "RollBack"
    assert "m0 refuses it, of which the JailPool's status says more" in decision.condition.message
    assert "line 3" not in decision.condition.message, "authors of pipelines read it"
    assert decision.state.detail == "line 3: no such policy"


@pytest.mark.parametrize(
    ("waiting", "verdict"),
    [
        (member(1, "new", ready=False), "RollBack"),  # had it, and is not ready
        (member(1, "new", ready=False, answers=False), "RollBack"),  # had it, and does not answer
        (member(1, "old"), "RollBack"),  # answers, but does not have it
        (member(1, "old", ready=False, answers=False), "Pending"),  # never had it
    ],
)
def test_only_members_that_never_had_the_change_are_passed_over(waiting: Member, verdict: str) -> None:
    state = first_step(step=2, canaries=("m0", "m1"))
    in_time = rollout.decide(situation(member(0, "new"), waiting, state=state, now=seconds(600)))
    late = rollout.decide(situation(member(0, "new"), waiting, state=state, now=seconds(601)))
    assert (in_time.verdict, late.verdict) == ("Pending", verdict)
    if verdict == "Pending":
        assert late.state.watched_since == seconds(601)
        later = rollout.decide(situation(member(0, "new"), waiting, state=late.state, now=seconds(602)))
        assert later.state.interruptions == 0


def test_when_nobody_gets_ready_it_ends_whoever_is_to_blame() -> None:
    away = member(0, "old", ready=False, answers=False, message="does not answer")
    decision = rollout.decide(situation(away, member(1), state=first_step(), now=seconds(601)))
    assert decision.verdict == "RollBack"
    assert "m0: does not answer" in decision.condition.message


def test_members_that_do_not_stay_ready_end_it() -> None:
    state = first_step()
    for _ in range(rollout.INTERRUPTIONS_ALLOWED):
        state = rollout.decide(situation(member(0, "new"), member(1), state=state)).state
        assert state.watched_since == NOW
        state = rollout.decide(situation(member(0, "new", ready=False), member(1), state=state)).state
        assert state.watched_since is None
    state = rollout.decide(situation(member(0, "new"), member(1), state=state)).state
    last = rollout.decide(situation(member(0, "new", ready=False), member(1), state=state))
    assert last.verdict == "RollBack"


def test_what_a_canary_did_before_its_monitor_started_again_still_counts() -> None:
    """It denied half of what it decided, and would have got away with it."""
    watching = rollout.decide(situation(member(0, "new"), member(1), state=first_step())).state
    broken = rollout.decide(situation(member(0, "new", ready=False), member(1), state=watching, now=seconds(30))).state
    assert (broken.watched_since, broken.counted_since, broken.interruptions) == (None, NOW, 1)
    again = rollout.decide(situation(member(0, "new"), member(1), state=broken, now=seconds(40))).state
    assert (again.watched_since, again.counted_since) == (seconds(40), NOW), "it is watched for the whole pause again"
    seen = (
        Sample(NOW, "1", "new", 0, 0, 0, 0),
        Sample(seconds(20), "1", "new", 20, 200, 100, 20_000),
        Sample(seconds(40), "2", "new", 1, 10, 0, 1000),
        Sample(seconds(100), "2", "new", 10, 100, 0, 10_000),
    )
    others = member(1, samples=samples("old"))
    in_time = rollout.decide(situation(member(0, "new", samples=seen), others, state=again, now=seconds(60)))
    assert in_time.verdict == "Pending"
    assert in_time.tracks is not None
    assert (in_time.tracks.canary.sessions, in_time.tracks.canary.refusals) == (30, 100)
    verdict = rollout.decide(situation(member(0, "new", samples=seen), others, state=again, now=seconds(100)))
    assert verdict.verdict == "RollBack", verdict.condition.message
    following = rollout.decide(situation(member(0, "new", samples=samples("new")), others, state=watched())).state
    assert following.counted_since == NOW


def test_the_next_step_counts_from_its_own_beginning() -> None:
    passed = judged(member(0, "new", samples=samples("new")), member(1, samples=samples("old")))
    assert (passed.verdict, passed.state.step, passed.state.counted_since) == ("Promote", 2, None)


@pytest.mark.parametrize(
    ("sessions", "ready", "verdict"),
    [
        (30, True, "RollBack"),
        (30, False, "RollBack"),  # it has just been started again: what it did is there to compare with
        (3, True, "Inconclusive"),
        (3, False, "Promote"),  # nobody serves with what is in force: compared with what was before
    ],
)
def test_what_other_members_did_before_they_started_again_still_counts(
    sessions: int, verdict: str, *, ready: bool
) -> None:
    canary = member(0, "new", samples=samples("new", denials=30))  # a tenth of its decisions
    other = member(1, ready=ready, samples=samples("old", sessions=sessions))
    before = Usage(sessions=100, decisions=1000, refusals=90, microseconds=100_000)
    assert judged(canary, other, state=watched(before=before)).verdict == verdict


SLOW = {"ready": False, "answers": False, "message": "answers too late"}


def test_a_slow_answer_of_a_canary_interrupts_nothing_and_several_do() -> None:
    canary, other = member(0, "new", **SLOW, late=rollout_steps.LATE_ALLOWED), member(1, samples=samples("old"))
    slow = judged(canary, other)
    assert (slow.verdict, slow.state.watched_since, slow.state.interruptions) == ("Pending", NOW, 0)
    assert "waits for answers; m0: answers too late" in slow.condition.message
    answered = judged(member(0, "new", samples=samples("new")), other, state=slow.state)
    assert answered.verdict == "Promote", "the watch has gone on"
    for broken in (replace(canary, late=0), replace(canary, late=rollout_steps.LATE_ALLOWED + 1)):
        assert judged(broken, other).state.interruptions == 1
    beside = judged(canary, member(1, "new", ready=False), state=watched(step=2, canaries=("m0", "m1")))
    assert beside.state.interruptions == 1, "another one has stopped serving"


def test_a_canary_that_never_answered_in_time_is_not_watched() -> None:
    slow = member(0, "new", **SLOW, late=1)
    assert rollout.decide(situation(slow, member(1), state=first_step())).state.watched_since is None
    assert rollout.decide(situation(slow, member(1), state=first_step(), now=seconds(601))).verdict == "RollBack"


def test_a_slow_member_without_the_change_is_compared_with_nevertheless() -> None:
    canary = member(0, "new", samples=samples("new", denials=60))
    slow = member(1, "old", **SLOW, late=1, samples=samples("old", denials=60))
    assert judged(canary, slow).verdict == "Promote", "it has denied as much"
    idle = replace(slow, late=0, samples=())
    assert judged(canary, idle).verdict == "RollBack", "it does not serve, and did nothing: the time before counts"
