# SPDX-License-Identifier: BSD-2-Clause
"""The figures that metrics show are those by which a step is judged."""

from __future__ import annotations

from shai_operator.reconcile import rollout
from shai_operator.reconcile.judging import Usage
from shai_operator.reconcile.rollout_state import State, Tracks
from tests.reconcile.rollouts import BEFORE, first_step, judged, member, samples, seconds, situation, watched

CANARY = member(0, "new", samples=samples("new", denials=30))
OTHERS = member(1, samples=samples("old")), member(2, samples=samples("old", sessions=50))
COMPARED = Tracks(canary=Usage(30, 300, 30, 30_000), stable=Usage(80, 800, 0, 80_000))


def test_they_are_there_while_a_step_is_watched_and_when_it_is_judged() -> None:
    during = rollout.decide(situation(CANARY, *OTHERS, state=watched(), now=seconds(30)))
    assert (during.verdict, during.tracks) == ("Pending", COMPARED)
    after = judged(CANARY, *OTHERS)
    assert (after.verdict, after.tracks) == ("RollBack", COMPARED)


def test_the_last_step_is_compared_with_what_was_before() -> None:
    everybody = [member(number, "new", samples=samples("new")) for number in range(3)]
    last = watched(step=2, canaries=("m0", "m1", "m2"))
    found = rollout.decide(situation(*everybody, state=last, now=seconds(30))).tracks
    assert found == Tracks(canary=Usage(90, 900, 0, 90_000), stable=BEFORE)


def test_there_are_none_while_nothing_is_watched() -> None:
    waiting = first_step()
    assert rollout.decide(situation(member(0, "new", ready=False), *OTHERS, state=waiting)).tracks is None
    assert rollout.decide(situation(desired="old", state=State())).tracks is None
