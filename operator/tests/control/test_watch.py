# SPDX-License-Identifier: BSD-2-Clause
"""What the operator knows before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import kopf

from shai_operator.cluster.client import ClusterError, NotServedError
from shai_operator.control.backoff import Backoff
from shai_operator.control.loop import Loop
from shai_operator.handlers import watch
from shai_operator.reconcile.objects import WATCHED, Inventory
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    import pytest

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.executor import Executor

ERRORS = [ClusterError("list Task: it does not answer"), ClusterError("list Task: too many requests")]


class World:
    """An API server that answers about tasks at the third time, and has no benchmarks."""

    def __init__(self) -> None:
        self.errors = list(ERRORS)
        self.asked: list[str] = []

    async def list(self, kind: str) -> list[dict[str, Any]]:
        self.asked.append(kind)
        if kind == "Task" and self.errors:
            raise self.errors.pop()
        if kind == "Benchmark":
            raise NotServedError("list Benchmark: not found")
        return [dict(resource(kind, "one"))]


async def test_all_that_exists_is_known_and_nothing_of_it_is_reconciled_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = []

    async def wait(_: Backoff) -> None:
        paused.append(True)

    monkeypatch.setattr(Backoff, "wait", wait)
    world, loop = World(), Loop(Inventory(), cast("Executor", None))
    await watch.know_existing(cast("Cluster", world), loop)
    assert len(paused) == len(ERRORS)
    assert set(world.asked) == set(WATCHED)
    known = {kind for kind in WATCHED if loop.inventory.all(kind)}
    assert known == set(WATCHED) - {"Benchmark", "PolicyRevision"}
    assert len(loop.inventory.forged()) == 1
    assert (loop.heard, loop.redefined) == ({}, {})


def test_the_number_of_objects_costs_no_square_of_it() -> None:
    """kopf's indexers wake a task for each object whenever another object comes."""
    registry = kopf.OperatorRegistry()
    watch.register(registry, Loop(Inventory(), cast("Executor", None)))
    assert not list(registry._indexing.get_all_handlers())  # noqa: SLF001 - kopf does not tell otherwise
