# SPDX-License-Identifier: BSD-2-Clause
"""TaskRuns of one task beside one another: their turns, and which a member waits for.

There may be thousands: what one of them changes concerns a few others.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from shai_operator.reconcile import dependents, task_run_members, task_run_objects
from shai_operator.reconcile.objects import BRING_UP, name, reference
from tests.reconcile.builders import condition, inventory, resource

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Object

MANY = 300
TASK = ("search", "p", "index")


def run(number: int, *, ended: bool = False, **spec: str) -> Object:
    status = {"conditions": [condition("Succeeded", "True" if ended else "Unknown")]}
    made = f"2026-06-01T12:{number // 60:02}:{number % 60:02}Z"
    return resource("TaskRun", f"r{number}", {"pipeline": "p", "task": "index", **spec}, status, creationTimestamp=made)


@pytest.fixture
def runs() -> list[Object]:
    """The runs in the order of their turns: one that a member needs is the last that was made."""
    return [run(MANY, trigger=BRING_UP), *map(run, range(MANY))]


def test_runs_are_kept_in_the_order_of_their_turns(runs: list[Object]) -> None:
    shuffled = random.Random(1).sample(runs, len(runs))
    known = inventory(*shuffled, *shuffled)
    assert known.runs(*TASK) == runs
    assert [known.turn(one) for one in runs] == list(range(len(runs)))
    for gone in shuffled[:200]:
        known.remove(reference(gone))
    assert known.runs(*TASK) == [one for one in runs if one not in shuffled[:200]]
    assert known.runs("search", "p", "other") == ()


def test_a_run_concerns_a_few_others_only(runs: list[Object]) -> None:
    known = inventory(*runs, resource("Pipeline", "p", {"tasks": ["index"]}))
    ended = run(0, ended=True)
    known.put(ended)
    found = [ref.name for ref in dependents.of(ended, runs[1], known) if ref.kind == "TaskRun"]
    assert found[:2] == [name(runs[0]), "r1"], "the next ones, and not the one that has ended"
    assert len(found) < 20
    assert not [ref for ref in dependents.of(runs[5], None, known) if ref.kind == "TaskRun"], "a new one is the last"
    known.remove(reference(runs[5]))
    assert "r1" in [ref.name for ref in dependents.of(runs[5], None, known)], "nor is one that is gone in its way"


def test_what_is_written_of_a_pipeline_concerns_a_few_of_its_runs(runs: list[Object]) -> None:
    before = resource("Pipeline", "p", {"tasks": ["index"]})
    after = {**before, "status": {"members": 2}}
    known = inventory(*runs, after)
    assert len([ref for ref in dependents.of(after, before, known) if ref.kind == "TaskRun"]) < 20
    redefined = resource("Pipeline", "p", {"tasks": []}, generation=2)
    assert len([ref for ref in dependents.of(redefined, before, known) if ref.kind == "TaskRun"]) == len(runs)


def test_who_waits_for_many_looks_seldom(runs: list[Object]) -> None:
    known = inventory(*runs)
    waits = [task_run_members.look_again(one, known) for one in runs]
    assert waits == sorted(waits)
    assert waits[0] == 5
    assert 60 < waits[-1] <= 300


def test_a_member_waits_for_no_run_by_hand() -> None:
    """It would fail with the run's time-out, and wait for its retries."""
    by_hand, needed = run(1, member="m"), run(2, member="m", trigger=BRING_UP)
    assert task_run_objects.unfinished(inventory(by_hand), *TASK, "m") is None
    assert task_run_objects.unfinished(inventory(by_hand, needed), *TASK, "m") == needed
    assert task_run_objects.unfinished(inventory(needed), *TASK, "n") is None
