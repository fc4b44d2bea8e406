# SPDX-License-Identifier: BSD-2-Clause
"""Single steps of a rollout; test_rollout_simulation has sequences of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import rollout, rollout_state, rollout_steps
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.judging import Limits, Usage
from shai_operator.reconcile.members import Sample
from shai_operator.reconcile.rollout_state import Decision, Member, NeedComparison, Settings, Situation, State, Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = (Step(1, 60), Step("100%", 60))
HARMLESS = Effect("old", "new", {"flowsBefore": 100, "closedTotal": 10, "openedTotal": 2})
BEFORE = Usage(sessions=100, decisions=1000, refusals=10, microseconds=100_000)


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def samples(release: str, sessions: int = 30, denials: int = 0, microseconds: int = 1000) -> tuple[Sample, ...]:
    """Two samples, from the beginning and the end of the first minute."""
    return (
        Sample(NOW, "1", release, 0, 0, 0, 0),
        Sample(seconds(60), "1", release, sessions, sessions * 10, denials, sessions * microseconds),
    )


def member(ordinal: int, release: str = "old", **more: Any) -> Member:
    more.setdefault("ready", True)
    more.setdefault("answers", True)
    more.setdefault("comparable", release == "old")
    return Member(f"m{ordinal}", ordinal, release, **more)


def situation(*members: Member, **more: Any) -> Situation:
    known: dict[str, Any] = {
        "stable": "old",
        "desired": "new",
        "rejected": "",
        "state": State(),
        "settings": Settings(STEPS),
        "now": NOW,
        "effect": HARMLESS,
    }
    return Situation(members=members or (member(0), member(1), member(2)), **{**known, **more})


def first_step(**more: Any) -> State:
    return replace(State(candidate="new", step=1, canaries=("m0",), since=NOW, before=BEFORE), **more)


def watched(**more: Any) -> State:
    return first_step(watched_since=NOW, **more)


def judged(canary: Member, *others: Member, **more: Any) -> Decision:
    return rollout.decide(situation(canary, *others, **{"state": watched(), "now": seconds(60), **more}))


def outcome(decision: Decision) -> tuple[str, str]:
    return decision.verdict, decision.condition.reason


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


# Changes of members in the meantime.


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


# The desired release changes.


def test_another_change_takes_over_the_canaries_after_its_comparison() -> None:
    members = member(0, "new"), member(1), member(2)
    effect = replace(HARMLESS, after="newer")
    waiting = rollout.decide(situation(*members, desired="newer", state=watched()))
    assert waiting.targets == {"m0": "new", "m1": "old", "m2": "old"}
    assert waiting.comparison == NeedComparison("m1", "old", "newer")
    begun = rollout.decide(situation(*members, desired="newer", state=waiting.state, effect=effect))
    assert begun.targets == {"m0": "newer", "m1": "old", "m2": "old"}
    assert (begun.state.canaries, begun.state.superseded, begun.stable) == (("m0",), "", "old")


def test_canaries_keep_a_change_that_is_wanted_again_while_it_is_compared_again() -> None:
    members = member(0, "new"), member(1), member(2)
    other = rollout.decide(situation(*members, desired="newer", state=watched()))
    again = rollout.decide(situation(*members, desired="new", state=other.state, effect=None))
    assert again.targets == {"m0": "new", "m1": "old", "m2": "old"}
    assert again.comparison == NeedComparison("m1", "old", "new")
    begun = rollout.decide(situation(*members, desired="new", state=again.state))
    assert begun.targets == again.targets
    assert (begun.state.step, begun.state.canaries, begun.state.superseded) == (1, ("m0",), "")


def test_a_change_superseded_in_its_last_step_leaves_only_the_canaries() -> None:
    members = [member(ordinal, "new") for ordinal in range(3)]
    state = watched(step=2, canaries=("m0", "m1", "m2"))
    decision = rollout.decide(situation(*members, desired="newer", state=state))
    assert decision.targets == {"m0": "new", "m1": "old", "m2": "old"}
    everybody = Settings((Step("100%"),))
    decision = rollout.decide(situation(*members, desired="newer", state=state, settings=everybody))
    assert list(decision.targets.values()).count("old") == 1, "somebody has to be compared with"


def test_canaries_go_back_when_the_next_change_is_held() -> None:
    blocking = Effect("old", "newer", {"flowsBefore": 100, "closedTotal": 100})
    state = State(candidate="newer", superseded="new", canaries=("m0",), since=NOW)
    decision = rollout.decide(situation(member(0, "new"), member(1), desired="newer", state=state, effect=blocking))
    assert set(decision.targets.values()) == {"old"}
    assert (decision.state.superseded, decision.state.canaries) == ("", ())


def test_specs_that_go_back_end_a_rollout_even_when_paused() -> None:
    paused = Settings(STEPS, paused=True)
    decision = rollout.decide(situation(member(0, "new"), member(1), desired="old", state=watched(), settings=paused))
    assert set(decision.targets.values()) == {"old"}
    assert (decision.condition.reason, decision.state, decision.rejected) == ("Complete", State(), "")


def test_paused_holds_a_step_where_it_is() -> None:
    paused = Settings(STEPS, paused=True)
    worse = member(0, "new", samples=samples("new", denials=300))
    decision = judged(worse, member(1, samples=samples("old")), settings=paused)
    assert decision.condition.reason == "Paused"
    assert decision.targets == {"m0": "new", "m1": "old"}
    held = replace(decision.state, message="")
    assert held == watched()


def test_paused_gives_a_scaled_pool_no_more_canaries() -> None:
    paused = Settings((Step("50%"), Step("100%")), paused=True)
    members = [member(0, "new"), *(member(ordinal) for ordinal in range(1, 6))]
    decision = rollout.decide(situation(*members, state=watched(), settings=paused))
    assert list(decision.targets.values()).count("new") == 1
    going_on = rollout.decide(situation(*members, state=decision.state, settings=Settings(paused.steps)))
    assert list(going_on.targets.values()).count("new") == 3
    assert going_on.state.watched_since is None


def test_a_pool_scaled_in_keeps_to_the_share() -> None:
    steps = Settings((Step("50%"), Step("100%")))
    state = watched(canaries=("m3", "m0"))
    decision = rollout.decide(situation(member(0, "new"), member(1), state=state, settings=steps))
    assert decision.targets == {"m0": "new", "m1": "old"}


# Rejected, first, and without members.


def test_what_was_rejected_is_not_tried_again() -> None:
    state = State(message="the change was rolled back: it was bad")
    decision = rollout.decide(situation(rejected="new", state=state))
    assert set(decision.targets.values()) == {"old"}
    assert (decision.rejected, decision.condition.reason) == ("new", "RolledBack")
    assert decision.condition.message == state.message
    assert rollout.decide(situation(rejected="other")).targets["m0"] == "new"


def test_held_policies_keep_the_rejection_and_its_message() -> None:
    state = State(message="the change was rolled back: it was bad")
    decision = rollout.decide(situation(desired="old", rejected="new", held=("p",), state=state))
    assert (decision.rejected, decision.condition.message) == ("new", state.message)
    corrected = rollout.decide(situation(desired="old", rejected="new", state=decision.state))
    assert (corrected.rejected, corrected.condition.reason) == ("", "Complete")


def test_the_first_release_goes_to_all_at_once() -> None:
    waiting = rollout.decide(situation(member(0, ""), member(1, ""), stable="", first=True, effect=None))
    assert set(waiting.targets.values()) == {"new"}
    assert (waiting.comparison, waiting.stable, waiting.condition.reason) == (None, "", "Progressing")
    ready = rollout.decide(situation(member(0, "new"), member(1, "new"), stable="", first=True, state=waiting.state))
    assert (ready.stable, ready.condition.reason) == ("new", "Complete")


def test_a_refused_first_release_is_not_rejected_since_there_is_nothing_to_go_back_to() -> None:
    members = member(0, "new"), member(1, "", refusal="line 3")
    decision = rollout.decide(situation(*members, stable="", first=True, now=seconds(9999)))
    assert (decision.stable, decision.rejected) == ("", "")
    assert "m1 refuses it, of which the JailPool's status says more" in decision.condition.message
    assert "line 3" not in decision.condition.message, "authors of pipelines read it"


def test_without_members_the_specs_are_in_force_at_once() -> None:
    decision = rollout.decide(replace(situation(effect=None), members=()))
    assert (decision.stable, decision.condition.status) == ("new", "True")


def test_what_only_leaves_out_is_in_force_at_once() -> None:
    decision = rollout.decide(situation(effect=None, withdrawal=True))
    assert (decision.stable, set(decision.targets.values())) == ("new", {"new"})


def test_a_stable_release_that_every_member_refuses_holds_nothing_up() -> None:
    refusing = [member(ordinal, "", comparable=False, refuses_stable=True) for ordinal in range(2)]
    assert set(rollout.decide(situation(*refusing, effect=None)).targets.values()) == {"new"}
    one_has_it = rollout.decide(situation(refusing[0], member(1), effect=None))
    assert set(one_has_it.targets.values()) == {"old"}


# The status.

MOMENTS = st.none() | st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001 - made aware below
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
STATES = st.builds(
    State,
    candidate=st.sampled_from(["", "shai-release-0123456789ab"]),
    superseded=st.sampled_from(["", "shai-release-ba9876543210"]),
    step=st.integers(0, 20),
    canaries=st.lists(st.sampled_from(["m0", "m1", "m2"]), unique=True).map(tuple),
    since=MOMENTS,
    watched_since=MOMENTS,
    interruptions=st.integers(0, 5),
    before=st.builds(Usage, *[st.integers(0, 2**40)] * 4),
    message=st.text(max_size=50),
)


@given(STATES)
def test_every_state_is_read_back_as_it_was_written(state: State) -> None:
    assert rollout_state.read({"rollout": rollout_state.write(state)}) == state


def test_no_status_is_no_rollout() -> None:
    assert rollout_state.read({}) == State()
    assert rollout_state.write(State()) == {}
