# SPDX-License-Identifier: BSD-2-Clause
"""The controller of AnalysisRuns, with monitors that are real servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.cluster.client import ClusterError
from shai_operator.control.run_controller import RunController
from shai_operator.control.sharding import ShardingError
from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorError
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import status
from shai_operator.reconcile.runs import Shards
from testing.waiting import until_async
from tests.control.run_world import (
    ANALYSIS,
    ANALYSIS_JOB,
    HASH,
    SAID,
    TASKS,
    World,
    serving,
)
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.sharding import Sharding
    from shai_operator.reconcile.objects import Object


def run(**metadata: Any) -> Object:
    return resource(
        "AnalysisRun", "one", {"pipeline": "syse", "trigger": "Manual", "deadlineSeconds": 10**9}, **metadata
    )


def runs(world: World) -> RunController:
    return RunController(
        world.loop, cast("Executor", world.written), world.jobs, world, cast("Sharding", world.sharding)
    )


async def test_a_run_asks_the_member_and_ends_with_its_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, ref = runs(world), world.put(run())
        await controller.reconcile(ref)
        await until_async(lambda: bool(world.asked))
        assert world.asked == [{"pipeline": "syse", "scope": "all", "full": False}]
        job = world.jobs.get(ANALYSIS_JOB)
        assert job is not None
        await until_async(lambda: job.progress)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("Unknown", "Running")
        assert status(world.inventory.get(ref) or {})["progress"] == {"phase": "views", "done": 3, "total": 4}
        world.gate.set()
        await world.ended(ANALYSIS_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("True", "Complete")
        assert len(world.asked) == 1
        await controller.reconcile(ref)
        assert world.jobs.get(ANALYSIS_JOB) is None


@pytest.mark.parametrize(
    ("answer", "ended", "says"),
    [
        (ANALYSIS | {"accesses": []}, ("True", "Complete"), ""),
        (ShardingError("the Job of its shards failed"), ("False", "Failed"), "main-0: the Job of its shards failed"),
        (MonitorError("import analysis: stale", 409), ("False", "Failed"), "import analysis: stale"),
        (ClusterError("quota of rack-2"), ("False", "Failed"), "ClusterError; the operator's log has more"),
    ],
    ids=["done", "failed", "refused", "not made"],
)
async def test_a_run_in_shards_is_not_the_member_s(
    tmp_path: Path, answer: dict[str, Any] | Exception, ended: tuple[str, str], says: str
) -> None:
    async with serving(tmp_path) as world:
        wanted = run()
        wanted["spec"]["shards"] = {"count": 2, "cpuMillicores": 500, "memoryMegabytes": 256}
        controller, ref = runs(world), world.put(wanted)
        await controller.reconcile(ref)
        await until_async(lambda: bool(world.sharding.asked))
        assert world.sharding.asked == [("search", "192.0.2.1:1", Shards(2, 500, 256, 10**9))]
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("Unknown", "Running")
        (row,) = status(world.inventory.get(ref) or {})["members"]
        assert (row["done"], row["total"], row["message"]) == (1, 2, "1 of 2 pods of its Job have begun")
        if isinstance(answer, Exception):
            world.sharding.answer.set_exception(answer)
        else:
            world.sharding.answer.set_result(answer)
        await world.ended(ANALYSIS_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ended
        assert says in world.succeeded(ref)[2]
        assert "rack-2" not in world.succeeded(ref)[2]
        assert world.asked == [], "the member did not analyse"


@pytest.mark.parametrize("how", ["annotation", "deletion"])
async def test_a_run_that_is_no_longer_wanted_ends_the_request(tmp_path: Path, how: str) -> None:
    async with serving(tmp_path) as world:
        controller, ref = runs(world), world.put(run())
        await controller.reconcile(ref)
        await until_async(lambda: bool(world.asked))
        if how == "annotation":
            world.put(
                {
                    **(world.inventory.get(ref) or {}),
                    "metadata": run(annotations={"shai.dev/cancel": "true"})["metadata"],
                }
            )
        else:
            world.inventory.remove(ref)
        await controller.reconcile(ref)
        await until_async(world.broken_off.is_set)
        assert how == "deletion" or world.succeeded(ref)[:2] == ("False", "Cancelled")


@pytest.mark.parametrize("former", ["runs", "has ended"])
async def test_a_run_that_is_made_anew_asks_by_itself(tmp_path: Path, former: str) -> None:
    async with serving(tmp_path) as world:
        controller, ref = runs(world), world.put(run())
        await controller.reconcile(ref)
        await until_async(lambda: bool(world.asked))
        if former == "has ended":
            world.gate.set()
            await world.ended(ANALYSIS_JOB)
        world.put(run(uid="uid-new"))
        await controller.reconcile(ref)
        if former == "runs":
            job = world.jobs.get(ANALYSIS_JOB)
            assert job is not None
            assert job.cancel.is_set()
            await world.ended(ANALYSIS_JOB)
            assert len(world.asked) == 1, "the former ends first"
            await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("Unknown", "Running"), "the former's result is not its own"
        assert world.jobs.get(ANALYSIS_JOB) is None
        await until_async(lambda: len(world.asked) == 2)
        world.gate.set()
        await world.ended("analysis/uid-new/main-0")
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("True", "Complete")


@pytest.mark.parametrize(
    ("monitor", "says"),
    [
        (None, "its monitor has not answered yet"),
        (Monitor(ready=False, tasks=TASKS), "its monitor is not ready)"),
        (Monitor(ready=False, reason=SAID, tasks=TASKS), "is not ready, of which the JailPool's status says more"),
        (Monitor(ready=True, tasks={("other", "x"): "Running"}), "does not have pipeline syse in force yet"),
    ],
)
async def test_a_member_that_is_not_ready_is_not_asked(tmp_path: Path, monitor: Monitor | None, says: str) -> None:
    async with serving(tmp_path) as world:
        world.monitor = monitor
        controller, ref = runs(world), world.put(run())
        assert await controller.reconcile(ref) == 5.0
        assert says in world.succeeded(ref)[2]
        assert SAID not in json.dumps(world.inventory.get(ref)), "that is for those who may read JailPools"
        assert world.asked == []


async def test_a_monitor_that_ends_during_a_run_is_asked_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as world, MonitorClient(socket=tmp_path / "gone.sock") as gone:
        serves, world.client = world.client, gone
        controller, ref = runs(world), world.put(run())
        await controller.reconcile(ref)
        await world.ended(ANALYSIS_JOB)
        assert await controller.reconcile(ref) == 5.0, "it waits for the monitor, and does not ask on and on"
        assert world.succeeded(ref)[:2] == ("Unknown", "Running")
        assert "gone.sock" not in json.dumps(world.inventory.get(ref)), "where it is is not for authors of pipelines"
        assert (world.monitor, "gone.sock" in world.unreachable, world.looks) == (None, True, 1)
        assert not world.jobs.running(ANALYSIS_JOB)

        world.client, world.monitor, world.unreachable = serves, Monitor(ready=True, hash=HASH, tasks=TASKS), ""
        await controller.reconcile(ref)
        await until_async(lambda: len(world.asked) == 1)
        world.gate.set()
        await world.ended(ANALYSIS_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("True", "Complete")
