# SPDX-License-Identifier: BSD-2-Clause
"""The order in which tasks start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import order
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from shai_operator.reconcile.order import Graph

CONDUITS = [
    *({"name": name, "kind": "file"} for name in "abcd"),
    {"name": "pairs", "kind": "tuple"},
    {"name": "pipe", "kind": "pipe"},
    {"name": "channel", "kind": "channel"},
]


def graph(**tasks: dict[str, Any]) -> Graph:
    """Return the graph of tasks with these specs; ``reads`` and ``writes`` are names, divided by blanks."""
    objects = {
        name: resource(
            "Task",
            name,
            {
                "run": "Once",
                **spec,
                "reads": str(spec.get("reads", "")).split(),
                "writes": str(spec.get("writes", "")).split(),
            },
        )
        for name, spec in tasks.items()
    }
    return order.graph(resource("Pipeline", "p", {"tasks": list(tasks), "conduits": CONDUITS}), objects)


def after(found: Graph) -> dict[str, set[str]]:
    return {task: set(found.before(task)) for task in found.waits}


@pytest.mark.parametrize(
    ("tasks", "waits"),
    [
        ({"reader": {"reads": "a"}, "writer": {"writes": "a"}}, {"reader": {"writer"}}),
        ({"reader": {"reads": "pairs"}, "writer": {"writes": "pairs"}}, {"reader": {"writer"}}),
        ({"reader": {"reads": "a", "run": "Always"}, "writer": {"writes": "a"}}, {"reader": {"writer"}}),
        ({"reader": {"reads": "a"}, "writer": {"writes": "a", "run": "Always"}}, {}),
        ({"reader": {"reads": "pipe channel"}, "writer": {"writes": "pipe channel"}}, {}),
        ({"reader": {"reads": "b"}, "writer": {"writes": "a"}}, {}),
        ({"both": {"reads": "a", "writes": "a"}}, {}),
        ({"low": {"writes": "a", "raisesTo": ["high"]}, "high": {"reads": "a"}}, {}),
    ],
)
def test_a_reader_waits_for_a_writer_that_ends(tasks: dict[str, dict[str, Any]], waits: dict[str, set[str]]) -> None:
    found = after(graph(**tasks))
    assert {task: before for task, before in found.items() if before} == waits


def test_cycles_are_reported_and_not_followed() -> None:
    found = graph(
        one={"reads": "a", "writes": "b"},
        two={"reads": "b", "writes": "a c"},
        last={"reads": "c"},
    )
    assert after(found) == {"one": set(), "two": set(), "last": {"two"}}
    assert found.cycles == (("one", "two"),)
    assert order.rows(found) == [
        {"task": "one", "waitsFor": [], "cycle": ["one", "two"]},
        {"task": "two", "waitsFor": [], "cycle": ["one", "two"]},
        {"task": "last", "waitsFor": [{"task": "two", "conduit": "c"}]},
    ]


SPECS = st.fixed_dictionaries(
    {
        "run": st.sampled_from(["Once", "Once", "Always"]),
        "reads": st.sets(st.sampled_from("abcd")).map(" ".join),
        "writes": st.sets(st.sampled_from("abcd")).map(" ".join),
    }
)


@given(st.lists(SPECS, min_size=1, max_size=7))
def test_every_task_starts(specs: list[dict[str, Any]]) -> None:
    """Nothing waits for a task that waits for it, directly or not; and only a cycle leaves a wait out."""
    tasks = {f"t{number}": spec for number, spec in enumerate(specs)}
    found = graph(**tasks)
    left, started = after(found), set[str]()
    while left:
        free = {task for task, before in left.items() if before <= started}
        assert free, f"they wait for one another: {left}"
        started |= free
        left = {task: before for task, before in left.items() if task not in free}
    among = {frozenset((a, b)) for cycle in found.cycles for a in cycle for b in cycle}
    for reader, spec in tasks.items():
        for writer, other in tasks.items():
            common = set(spec["reads"].split()) & set(other["writes"].split())
            if common and other["run"] == "Once" and reader != writer and frozenset((reader, writer)) not in among:
                assert writer in found.before(reader)


def test_a_task_waits_for_another_one_for_one_reason() -> None:
    """All reasons of the largest pipelines are a million, for which the operator has no time."""
    both = {name: {"writes": "a b c d"} for name in ("one", "two")}
    found = graph(reader={"reads": "d a b c"}, **both)
    assert found.waits["reader"] == (order.Wait("one", "d"), order.Wait("two", "d"))
