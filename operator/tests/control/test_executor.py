# SPDX-License-Identifier: BSD-2-Clause
"""When the executor writes a status, by a clock that the test sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control.executor import Executor
from shai_operator.reconcile.actions import Plan, Requeue, SetStatus
from shai_operator.reconcile.objects import Inventory, reference, status
from shai_operator.reconcile.quiet import COUNTER_SECONDS
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Object

POOL = resource("JailPool", "default")


class World:
    """An API server with one pool, and a clock. ``writes`` are the statuses that were applied."""

    def __init__(self, pool: Object = POOL) -> None:
        self.now = 1000.0
        self.writes: list[Mapping[str, Any]] = []
        self.inventory = Inventory()
        self.inventory.put(pool)
        self.executor = Executor(cast("Cluster", self), self.inventory, lambda: self.now)

    async def apply_status(self, obj: Object, writer: str, written: Mapping[str, Any]) -> Object:
        del writer
        self.writes.append(written)
        return {**obj, "status": {**status(obj), **written}}

    async def write(self, *, sessions: int = 0, ready: int = 1, requeue: float | None = None) -> float | None:
        """Execute a plan with this status; return when to reconcile again."""
        obj = self.inventory.get(reference(POOL))
        assert obj is not None
        wanted = {"readyReplicas": ready, "members": [{"name": "m-0", "sessions": sessions}]}
        plan = Plan([SetStatus(obj, "w", wanted)])
        if requeue is not None:
            plan.add(Requeue(requeue))
        return await self.executor.execute(plan)


async def test_the_same_status_is_written_once() -> None:
    world = World()
    assert [await world.write(sessions=3) for _ in range(50)] == [None] * 50
    assert len(world.writes) == 1


async def test_a_figure_is_written_after_its_time_and_with_the_next_news() -> None:
    world = World()
    await world.write(sessions=0)
    world.now += 10
    assert await world.write(sessions=1) == COUNTER_SECONDS - 10
    assert await world.write(sessions=2, requeue=5) == 5
    assert len(world.writes) == 1
    await world.write(sessions=3, ready=2)
    assert world.writes[-1] == {"readyReplicas": 2, "members": [{"name": "m-0", "sessions": 3}]}
    world.now += COUNTER_SECONDS
    assert await world.write(sessions=4, ready=2) is None
    assert world.writes[-1]["members"][0]["sessions"] == 4
    assert len(world.writes) == 3


async def test_traffic_costs_a_write_a_minute() -> None:
    world = World()
    for second in range(600):
        world.now = 1000.0 + second
        await world.write(sessions=second)
    assert len(world.writes) <= 600 / COUNTER_SECONDS + 1


async def test_what_somebody_else_has_changed_is_written_at_once() -> None:
    world = World()
    await world.write(sessions=0)
    obj = world.inventory.get(reference(POOL))
    assert obj is not None
    world.inventory.put({**obj, "status": {**status(obj), "readyReplicas": 9}})
    await world.write(sessions=1)
    assert len(world.writes) == 2


async def test_a_figure_that_goes_back_needs_no_write() -> None:
    world = World()
    await world.write(sessions=1)
    assert await world.write(sessions=2) is not None
    assert await world.write(sessions=1) is None
    assert len(world.writes) == 1


WRITTEN = {"readyReplicas": 1, "members": [{"name": "m-0", "sessions": 0}]}


def kept(fields: set[str], writer: str = "w", operation: str = "Apply", subresource: str = "status") -> Object:
    """Return the pool with the status of an earlier operator, which owns these fields of it."""
    owned = {
        "manager": writer,
        "operation": operation,
        "subresource": subresource,
        "fieldsV1": {"f:status": {f"f:{field}": {} for field in fields}},
    }
    return resource("JailPool", "default", {}, WRITTEN, managedFields=[owned])


async def test_an_operator_that_starts_writes_only_what_is_not_there() -> None:
    world = World(kept({"readyReplicas", "members"}))
    assert await world.write() is None
    assert world.writes == []
    await world.write(ready=2)
    assert len(world.writes) == 1


@pytest.mark.parametrize(
    "pool",
    [
        kept({"readyReplicas", "members", "former"}),  # its field would stay
        kept({"readyReplicas"}),
        kept({"readyReplicas", "members"}, writer="other"),
        kept({"readyReplicas", "members"}, operation="Update"),
        kept({"readyReplicas", "members"}, subresource=""),
        resource("JailPool", "default", {}, WRITTEN),
    ],
)
async def test_who_does_not_own_exactly_these_fields_writes_them(pool: Object) -> None:
    world = World(pool)
    await world.write()
    assert len(world.writes) == 1
