# SPDX-License-Identifier: BSD-2-Clause
"""The controller of Benchmarks, with a stand-in for the measurement."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.cluster.client import ClusterError, RefusedError
from shai_operator.control.benchmark_controller import BenchmarkController, description
from shai_operator.control.measuring import MeasuringError, Results, Slices, Subject
from shai_operator.reconcile import bundles
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import Reference, status
from testing.waiting import until_async
from tests.control.run_world import (
    BENCHMARK_JOB,
    HASH,
    TASKS,
    World,
    serving,
)
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.release_store import ReleaseStore


class Generator:
    """Stands in for a load generator."""

    def __init__(self) -> None:
        self.subjects: list[Subject] = []
        self.gate = asyncio.Event()
        self.put_back = False
        self.error: Exception | None = None

    async def run(
        self, subject: Subject, plan: Mapping[str, Any], progress: Callable[[Slices], None], cancel: asyncio.Event
    ) -> Results:
        self.subjects.append(subject)
        if self.error is not None:
            raise self.error
        progress(Slices(1, plan["rounds"], "slice 1"))
        waits = [asyncio.create_task(event.wait()) for event in (self.gate, cancel)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if cancel.is_set():
            self.put_back = True
            raise MeasuringError("put back")
        return Results({"rows": [], "summary": {"shai": "1: 0.1 %"}}, "a table")


class Kept:
    """Stands in for the stored releases."""

    def __init__(self) -> None:
        policy = {"apiVersion": "shai.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "p"}, "spec": {}}
        self.release = bundles.release("main", "search", [policy], {})

    async def named(self, wanted: list[str]) -> dict[str, bundles.Release]:
        return {self.release.name: self.release} if self.release.name in wanted else {}


def benchmarking(world: World, provider: str = "local") -> tuple[BenchmarkController, Generator, Reference]:
    generator, kept = Generator(), Kept()
    label = bundles.Bundle(kept.release, bundles.facts([])).label
    world.monitor = Monitor(ready=True, bundle=label, hash=HASH, tasks=TASKS)
    controller = BenchmarkController(
        world.loop,
        cast("Executor", world.written),
        world.jobs,
        pools=world,
        releases=cast("ReleaseStore", kept),
        generators={provider: generator},
    )
    spec = {"pipeline": "syse", "rounds": 3, "modes": ["baseline", "shai"], "deadlineSeconds": 10**9}
    return controller, generator, world.put(resource("Benchmark", "cost", spec))


async def test_a_benchmark_measures_what_the_member_has_in_force(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        await controller.reconcile(ref)
        await until_async(lambda: bool(generator.subjects))
        assert [json.loads(text)["kind"] for text in generator.subjects[0].manifests] == ["Policy"]
        assert generator.subjects[0].namespace == "search"
        await controller.reconcile(ref)
        assert world.succeeded(ref) == ("Unknown", "Running", "slice 1")
        generator.gate.set()
        await world.ended(BENCHMARK_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("True", "Complete")
        assert status(world.inventory.get(ref) or {})["summary"] == {"shai": "1: 0.1 %"}
        assert [body["kind"] for body in world.written.created] == ["ConfigMap"]
        await controller.reconcile(ref)
        assert len(generator.subjects) == 1, "it is over"


async def test_a_deleted_benchmark_ends_its_measurement(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        await controller.reconcile(ref)
        await until_async(lambda: bool(generator.subjects))
        world.inventory.remove(ref)
        await controller.reconcile(ref)
        await until_async(lambda: generator.put_back)


async def test_a_benchmark_that_is_made_anew_ends_the_measurement_of_the_former(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        await controller.reconcile(ref)
        await until_async(lambda: bool(generator.subjects))
        former = world.inventory.get(ref)
        assert former is not None
        world.put({**former, "metadata": {**former["metadata"], "uid": "uid-new"}, "status": {}})
        await controller.reconcile(ref)
        job = world.jobs.get(BENCHMARK_JOB)
        assert job is not None
        assert job.cancel.is_set()
        await world.ended(BENCHMARK_JOB)
        assert (generator.put_back, len(generator.subjects)) == (True, 1), "the former ends first"
        await controller.reconcile(ref)
        await until_async(lambda: len(generator.subjects) == 2)
        assert world.jobs.running("benchmark/uid-new")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MeasuringError("no keys.jsonl"), "no keys.jsonl"),
        (ValueError("Alice's diary"), "ValueError; the operator's log has more (look there for benchmark/uid-cost)"),
    ],
)
async def test_only_what_was_written_for_it_goes_into_a_status(tmp_path: Path, error: Exception, says: str) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        generator.error = error
        await controller.reconcile(ref)
        await world.ended(BENCHMARK_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref) == ("False", "Failed", says)


async def test_a_host_is_free_when_the_member_is_as_it_was_before(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        await controller.reconcile(ref)
        await until_async(lambda: bool(generator.subjects))
        first = world.inventory.get(ref)
        assert first is not None
        world.inventory.remove(ref)
        second = world.put(
            {**first, "metadata": {**first["metadata"], "name": "next", "uid": "uid-next"}, "status": {}}
        )
        await controller.reconcile(ref)
        await controller.reconcile(second)
        assert "waits for Benchmark search/cost, which measures on the same host" in world.succeeded(second)[2]
        await world.ended(BENCHMARK_JOB)
        await controller.reconcile(ref)
        await controller.reconcile(second)
        await until_async(lambda: len(generator.subjects) == 2)
        assert generator.put_back


async def test_two_begin_nothing_on_a_host_at_the_same_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        first = world.inventory.get(ref)
        assert first is not None
        world.written.late.clear()
        begins = asyncio.create_task(controller.reconcile(ref))
        await until_async(lambda: world.written.waiting == 1, "its start is being recorded")
        # It is as old as the first, and comes before it by its name.
        second = world.put({**first, "metadata": {**first["metadata"], "name": "a", "uid": "uid-a"}})
        next_one = asyncio.create_task(controller.reconcile(second))
        await until_async(lambda: world.written.waiting == 2, "the second is decided about meanwhile")
        world.written.late.set()
        await asyncio.gather(begins, next_one)
        await until_async(lambda: bool(generator.subjects))
        assert world.jobs.running(BENCHMARK_JOB)
        assert not world.jobs.running("benchmark/uid-a")
        assert "waits for Benchmark search/cost, which measures on the same host" in world.succeeded(second)[2]


async def test_a_start_that_cannot_be_recorded_keeps_no_host(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        world.written.failure = ClusterError("no API server")
        with pytest.raises(ClusterError):
            await controller.reconcile(ref)
        world.written.failure = None
        await controller.reconcile(ref)
        await until_async(lambda: bool(generator.subjects))


async def test_results_that_the_api_server_refuses_end_the_benchmark_and_its_turn(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, generator, ref = benchmarking(world)
        await controller.reconcile(ref)
        generator.gate.set()
        await world.ended(BENCHMARK_JOB)
        world.written.refusal = ClusterError("create ConfigMap search/cost-1: the API server is not reached")
        with pytest.raises(ClusterError):
            await controller.reconcile(ref)  # it is tried again
        assert world.succeeded(ref)[:2] == ("Unknown", "Running")
        world.written.refusal = RefusedError("create ConfigMap search/cost-1: exceeded quota: few, limited: 2")
        await controller.reconcile(ref)
        status, reason, message = world.succeeded(ref)
        assert (status, reason) == ("False", "Failed")
        assert "its results are not kept: create ConfigMap search/cost-1: exceeded quota: few" in message
        await controller.reconcile(ref)
        first = world.inventory.get(ref)
        assert first is not None
        second = world.put(
            {**first, "metadata": {**first["metadata"], "name": "next", "uid": "uid-next"}, "status": {}}
        )
        await controller.reconcile(second)
        await until_async(lambda: world.jobs.running("benchmark/uid-next"), "the host is free for others")


async def test_a_pool_elsewhere_cannot_be_measured_and_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        controller, _, ref = benchmarking(world, provider="remote")
        await controller.reconcile(ref)
        await world.ended(BENCHMARK_JOB)
        await controller.reconcile(ref)
        assert world.succeeded(ref)[:2] == ("False", "Failed")
        assert (
            "has provider local, and this operator measures members of pools with provider remote only"
            in world.succeeded(ref)[2]
        )


async def test_a_member_is_described_as_its_installation_lays_it_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        pool = world.inventory.find("JailPool", "", "main")
        assert pool is not None
        found = description(pool, "main-0", "syse")
        variables = found.pop("variables")
        assert found == {
            "name": "main-0",
            "pipeline": "syse",
            "image": "/pools/images/1234",
            "data": "/pools/main-0/data",
            "monitor": {"socket": "/pools/main-0/run/monitor.sock"},
            "store": "/pools/main-0/run/store.sock",
            "seed": "/seed",
            "runtimes": {"java": ["$(IMAGE)/jre", "/lib"]},  # the twins' monitors replace variables
            "sources": [],
        }
        assert variables["KEYS"] == "/pools/main-0/data/keys at 127.0.10.1"
        assert variables["IMAGE"] == "/pools/images/1234"
        with pytest.raises(MeasuringError, match="member main-7 of JailPool main is not installed"):
            description(pool, "main-7", "syse")
