# SPDX-License-Identifier: BSD-2-Clause
"""Rollouts whose release changes, was rejected, or is the first; and their status."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import rollout, rollout_state
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.judging import Usage
from shai_operator.reconcile.rollout_state import NeedComparison, Settings, State, Step
from tests.reconcile.rollouts import (
    HARMLESS,
    NOW,
    STEPS,
    judged,
    member,
    samples,
    seconds,
    situation,
    watched,
)

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
