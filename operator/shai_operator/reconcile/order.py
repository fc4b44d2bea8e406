# SPDX-License-Identifier: BSD-2-Clause
"""The order in which the tasks of a pipeline start, as their conduits say.

A task that reads what a task with ``run: Once`` writes waits for its end. Only conduits that keep data count: of a pipe
or a channel, both ends have to run at the same time. Tasks that would have to wait for one another do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

KEEPING = frozenset({"file", "tuple"})
"""The kinds of conduits that keep data."""
WAITS_LISTED = 32
"""Entries of a task's list in a status; the schema limits it."""


@dataclass(frozen=True)
class Wait:
    """A task whose end another one waits for, and the conduit that is the reason."""

    task: str
    conduit: str


@dataclass(frozen=True)
class Graph:
    """What each task of a pipeline waits for, in the order of the pipeline's list of tasks."""

    waits: Mapping[str, tuple[Wait, ...]]
    cycles: tuple[tuple[str, ...], ...] = ()
    """Tasks that would have to wait for one another: nothing is known about their order."""

    def before(self, task: str) -> frozenset[str]:
        """Return the tasks that end before this one starts."""
        return frozenset(wait.task for wait in self.waits.get(task, ()))


def graph(pipeline: Object, tasks: Mapping[str, Object]) -> Graph:
    """Return the order of a pipeline's tasks; ``tasks`` are the Task objects that exist, by name.

    A task that others become by raising their taint does not start by itself: it has no order.
    """
    specs = {task: spec(tasks[task]) for task in spec(pipeline).get("tasks") or () if task in tasks}
    raised = {task for one in specs.values() for task in one.get("raisesTo") or ()}
    specs = {task: one for task, one in specs.items() if task not in raised}
    keeping = {conduit["name"] for conduit in spec(pipeline).get("conduits") or () if conduit["kind"] in KEEPING}
    writers: dict[str, dict[str, None]] = {conduit: {} for conduit in keeping}  # tasks, in order
    for task, one in specs.items():
        for conduit in one.get("writes") or () if one.get("run") == "Once" else ():
            writers.get(conduit, {})[task] = None
    wanted = {task: _waits(task, one, writers) for task, one in specs.items()}
    cycles = _cycles({task: {wait.task for wait in found} for task, found in wanted.items()})
    among = {task: set(cycle) for cycle in cycles for task in cycle}
    return Graph(
        {task: tuple(wait for wait in found if wait.task not in among.get(task, ())) for task, found in wanted.items()},
        cycles,
    )


def rows(found: Graph) -> list[dict[str, Any]]:
    """Return the graph for a pipeline's status."""
    among = {task: list(cycle) for cycle in found.cycles for task in cycle}
    return [
        {
            "task": task,
            "waitsFor": [{"task": wait.task, "conduit": wait.conduit} for wait in waits[:WAITS_LISTED]],
            **({"cycle": among[task]} if task in among else {}),
        }
        for task, waits in found.waits.items()
    ]


def _waits(task: str, its: Mapping[str, Any], writers: Mapping[str, Mapping[str, None]]) -> list[Wait]:
    """Return one wait for each other task, with the first conduit that is a reason.

    In the largest pipelines, all tasks together have a million reasons.
    """
    found: dict[str, Wait] = {}
    for conduit in its.get("reads") or ():
        ahead = writers.get(conduit, {})
        if ahead.keys() - found.keys() - {task}:
            found |= {other: Wait(other, conduit) for other in ahead if other != task and other not in found}
    return list(found.values())


def _cycles(edges: Mapping[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of two or more tasks each of which waits for all others of its set, directly or not."""
    reached = {task: _reach(task, edges) for task in edges}
    found = []
    seen: set[str] = set()
    for task in edges:
        members = tuple(other for other in edges if other in reached[task] and task in reached[other])
        if task not in seen and len(members) > 1:
            found.append(members)
            seen.update(members)
    return tuple(found)


def _reach(task: str, edges: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [task]
    while ahead:
        new = edges.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return reached
