# SPDX-License-Identifier: BSD-2-Clause
"""Single steps of a rollout; test_rollout_simulation has sequences of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shai_operator.reconcile import rollout
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.judging import Limits, Usage
from shai_operator.reconcile.rollout_state import NeedComparison, Settings, State, Step
from tests.reconcile.rollouts import (
    HARMLESS,
    NOW,
    STEPS,
    first_step,
    judged,
    member,
    outcome,
    samples,
    seconds,
    situation,
    watched,
)

# Before the first step.


def test_a_change_is_compared_before_anything_gets_it() -> None:
    decision = rollout.decide(situation(effect=None))
    assert decision.comparison == NeedComparison("m0", "old", "new")
    assert set(decision.targets.values()) == {"old"}


def test_a_comparison_of_other_releases_does_not_count() -> None:
    decision = rollout.decide(situation(effect=replace(HARMLESS, before="older")))
    assert decision.comparison is not None
    assert decision.state.step == 0


def test_it_is_compared_by_a_member_that_has_the_stable_release() -> None:
    others = member(0, "older"), member(1, comparable=False), member(2, ready=False), member(3)
    decision = rollout.decide(situation(*others, effect=None))
    assert decision.comparison is not None
    assert decision.comparison.member == "m3"
    assert rollout.decide(situation(member(0, comparable=False, message="is down"), effect=None)).comparison is None


@pytest.mark.parametrize(("closed", "limit", "begins"), [(50, 50, True), (51, 50, False), (1, 0, False), (0, 0, True)])
def test_a_change_that_closes_too_much_does_not_begin(closed: int, limit: int, *, begins: bool) -> None:
    effect = Effect("old", "new", {"flowsBefore": 100, "closedTotal": closed})
    decision = rollout.decide(situation(effect=effect, settings=Settings(STEPS, Limits(closed_percent=limit))))
    assert ("new" in decision.targets.values()) is begins
    assert (decision.condition.reason == "BlocksFlows") is not begins


def test_being_held_back_is_told_once() -> None:
    effect = Effect("old", "new", {"flowsBefore": 100, "closedTotal": 99})
    first = rollout.decide(situation(effect=effect))
    assert [event.reason for event in first.events] == ["BlocksFlows"]
    assert "99 of 100" in first.condition.message
    assert rollout.decide(situation(effect=effect, state=first.state)).events == ()


def test_what_the_monitor_refuses_to_compare_is_rejected() -> None:
    decision = rollout.decide(situation(effect=None, refusal="$(X) is not defined", changed=("p",)))
    assert outcome(decision) == ("RollBack", "RolledBack")
    assert (decision.rejected, decision.reject) == ("new", ("p",))
    assert "the monitor refuses it, of which the JailPool's status says more" in decision.condition.message
    assert "$(X) is not defined" not in decision.condition.message, "authors of pipelines read it"
    assert decision.state.detail == "$(X) is not defined"
    assert decision.events[0].message.endswith("$(X) is not defined"), "of the JailPool"


def test_paused_shows_the_effect_and_begins_nothing() -> None:
    decision = rollout.decide(situation(settings=Settings(STEPS, paused=True)))
    assert decision.condition.reason == "Paused"
    assert "closes 10 of 100" in decision.condition.message
    assert set(decision.targets.values()) == {"old"}


# Steps.


def test_the_first_step_takes_ready_members_first() -> None:
    members = member(0, ready=False, answers=False), member(1, ready=False), member(2), member(3)
    decision = rollout.decide(situation(*members))
    assert decision.state.canaries == ("m2",)
    assert decision.targets == {"m0": "old", "m1": "old", "m2": "new", "m3": "old"}
    assert [event.reason for event in decision.events] == ["RolloutBegun"]


@pytest.mark.parametrize(
    ("members", "size", "count"),
    [(1, 3, 1), ("25%", 3, 1), ("50%", 3, 2), ("34%", 3, 2), ("100%", 3, 3), (5, 3, 3), ("1%", 256, 3)],
)
def test_a_share_of_members_is_rounded_up(members: int | str, size: int, count: int) -> None:
    assert Step(members).count(size) == count


def test_watching_begins_when_all_of_the_step_are_ready() -> None:
    waiting = rollout.decide(situation(member(0), member(1), state=first_step()))
    assert waiting.state.watched_since is None
    assert "0 of 1 members are ready" in waiting.condition.message
    unready = rollout.decide(situation(member(0, "new", ready=False), member(1), state=first_step()))
    assert unready.state.watched_since is None
    ready = rollout.decide(situation(member(0, "new"), member(1), state=first_step(), now=seconds(7)))
    assert ready.state.watched_since == seconds(7)
    assert ready.look_again == 60


def test_nothing_is_judged_before_the_pause_is_over() -> None:
    worse = member(0, "new", samples=samples("new", denials=300))
    assert judged(worse, member(1, samples=samples("old")), now=seconds(59)).verdict == "Pending"
    assert judged(worse, member(1, samples=samples("old")), now=seconds(60)).verdict == "RollBack"


def test_what_is_said_during_a_pause_does_not_change_with_the_clock() -> None:
    said = {judged(member(0, "new"), now=seconds(passed)).condition.message for passed in range(60)}
    (message,) = said
    assert timestamp(seconds(60)) in message


def test_a_step_that_passes_is_followed_by_the_next() -> None:
    decision = judged(member(0, "new", samples=samples("new")), member(1, samples=samples("old")), member(2))
    assert decision.verdict == "Promote"
    assert decision.stable == "old"
    assert (decision.state.step, decision.state.canaries) == (2, ("m0", "m1", "m2"))
    assert decision.state.before.sessions == 30, "the last step is compared with what the others did meanwhile"


def test_after_the_last_step_the_candidate_is_stable() -> None:
    canary = member(0, "new", samples=samples("new"))
    decision = judged(canary, state=watched(step=2))
    assert (decision.stable, decision.state, outcome(decision)) == ("new", State(), ("Promote", "Complete"))


def test_steps_of_as_many_members_are_one_step() -> None:
    steps = (Step(1), Step("10%"), Step("50%"), Step("100%"))
    decision = rollout.decide(situation(member(0), member(1), settings=Settings(steps)))
    passed = judged(
        member(0, "new", samples=samples("new")), member(1, samples=samples("old")), settings=Settings(steps)
    )
    assert (decision.state.step, decision.steps, passed.state.step) == (1, 4, 4)


def test_a_pool_of_one_is_judged_against_the_time_before() -> None:
    decision = rollout.decide(situation(member(0, samples=samples("old", sessions=40, denials=4))))
    assert decision.steps == 1
    assert decision.state.before == Usage(40, 400, 4, 40_000)
    state = replace(decision.state, watched_since=NOW)
    fine, worse = (member(0, "new", samples=samples("new", denials=denials)) for denials in (10, 30))
    assert judged(fine, state=state).verdict == "Promote"
    assert judged(worse, state=state).verdict == "RollBack"


def test_too_few_sessions_wait_and_say_how_many_are_missing() -> None:
    few = judged(member(0, "new", samples=samples("new", sessions=7)), member(1, samples=samples("old")))
    assert outcome(few) == ("Inconclusive", "Inconclusive")
    assert "13 more sessions" in few.condition.message
    assert few.targets["m0"] == "new"
    none = judged(member(0, "new", samples=samples("new")), member(1, samples=samples("old", sessions=19)))
    assert outcome(none) == ("Inconclusive", "Inconclusive")
    assert "members without the change have to serve 1 more" in none.condition.message


def test_a_regression_rolls_everybody_back() -> None:
    worse = member(0, "new", samples=samples("new", denials=60))
    decision = judged(worse, member(1, samples=samples("old")), changed=("friends", "public"))
    assert outcome(decision) == ("RollBack", "RolledBack")
    assert (decision.stable, decision.rejected, decision.reject) == ("old", "new", ("friends", "public"))
    assert set(decision.targets.values()) == {"old"}
    assert "20.0 % of decisions are denials with the change" in decision.condition.message
    assert "friends, public" in decision.condition.message
