# SPDX-License-Identifier: BSD-2-Clause
"""The controllers of runs and benchmarks.

Monitors are real servers on unix sockets; statuses go straight into the inventory.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web

from shai_operator.cluster.client import ClusterError, RefusedError
from shai_operator.control.benchmark_controller import BenchmarkController, description
from shai_operator.control.jobs import Jobs
from shai_operator.control.loop import Loop
from shai_operator.control.measuring import MeasuringError, Results, Slices, Subject
from shai_operator.control.run_controller import RunController
from shai_operator.control.sharding import ShardingError
from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorError
from shai_operator.reconcile import bundles
from shai_operator.reconcile.actions import Create, Plan, Requeue, SetStatus
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import Inventory, Reference, reference, status
from shai_operator.reconcile.runs import Shards
from testing.waiting import until_async
from tests.control.monitor_server import listening
from tests.control.queues import idle
from tests.reconcile.builders import FOR_SEARCH, OWNED, condition, resource, space

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.control.sharding import Sharding
    from shai_operator.control.sharding import Subject as SharedSubject
    from shai_operator.reconcile.objects import Object

ANALYSIS_JOB, BENCHMARK_JOB = "analysis/uid-one/main-0", "benchmark/uid-cost"
HASH = "ab" * 32
SAID = "no space on /srv/disk-7 of rack-2"
TASKS = {("syse", "worker"): "Running"}
ANALYSIS = {"durationMicroseconds": 5000, "conduits": 1, "classes": 1, "instances": 1}
ANALYSIS |= dict.fromkeys(("expected", "granted", "refused", "undecided"), 0)


class Written:
    """Carries plans out on the inventory, like an API server that answers at once."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.created: list[Mapping[str, Any]] = []
        self.refusal: Exception | None = None
        """What the API server says to whatever is to be created."""
        self.late = asyncio.Event()
        """It answers when this is set."""
        self.late.set()
        self.waiting = 0
        """Plans that are being carried out."""
        self.failure: Exception | None = None

    async def execute(self, plan: Plan) -> float | None:
        wait = None
        self.waiting += 1
        await self.late.wait()
        self.waiting -= 1
        if self.failure is not None:
            raise self.failure
        for action in plan.actions:
            if isinstance(action, SetStatus):
                self._inventory.put({**action.obj, "status": {**status(action.obj), **action.status}})
            elif isinstance(action, Create):
                if self.refusal is not None:
                    raise self.refusal
                self.created.append(action.body)
            elif isinstance(action, Requeue):
                wait = action.seconds
        return wait

    def forget(self, _: Object) -> None: ...


class Sharded:
    """Stands for the pods of shards."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Shards]] = []
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def analyze(
        self,
        subject: SharedSubject,
        shards: Shards,
        progress: Callable[[Mapping[str, Any]], None],
        waiting: Callable[[str], None],
    ) -> dict[str, Any]:
        self.asked.append((subject.namespace, subject.endpoint, shards))
        progress({"phase": "shards", "done": 1, "total": 2})
        waiting("1 of 2 pods of its Job have begun")
        return await self.answer


@dataclass
class World:
    """A pool with one member, and the answers of its monitor."""

    client: MonitorClient
    inventory: Inventory = field(default_factory=Inventory)
    monitor: Monitor | None = field(default_factory=lambda: Monitor(ready=True, hash=HASH, tasks=TASKS))
    unreachable: str = ""
    looks: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[dict[str, Any]] = field(default_factory=list)
    broken_off: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.written = Written(self.inventory)
        self.loop = Loop(self.inventory, cast("Executor", self.written))
        self.jobs = Jobs()
        self.sharding = Sharded()
        ready = [condition("Ready", "True"), condition("Analyzed", "True")]
        self.put(space("search"))
        self.put(resource("Pipeline", "syse", {"pool": "main"}, {"bundle": HASH, "conditions": ready}))
        row = {"name": "main-0", "ready": "True", "address": "127.0.10.1", "image": "1234", **OWNED}
        spec = {
            **FOR_SEARCH,
            "allowedModes": ["shai", "baseline"],
            "provider": "local",
            "directory": "/pools",
            "keyValue": {"mode": "Managed", "seed": "/seed"},
            "variables": [{"name": "KEYS", "value": "$(DATA)/keys at $(MEMBER_ADDRESS)"}],
            "runtimes": [{"name": "java", "paths": ["$(IMAGE)/jre", "/lib"]}],
        }
        self.put(resource("JailPool", "main", spec, {"members": [row]}))

    def put(self, obj: Object) -> Reference:
        self.inventory.put(obj)
        return reference(obj)

    def members(self, pool: str) -> MemberObserver | None:
        if not pool:
            return None
        seen = SimpleNamespace(
            of=lambda _: self, client=lambda _: self.client, endpoint=lambda _: "192.0.2.1:1", look_now=self.look_now
        )
        return cast("MemberObserver", seen)

    def look_now(self) -> None:
        self.looks += 1

    def succeeded(self, ref: Reference) -> tuple[str, str, str]:
        (found,) = status(self.inventory.get(ref) or {})["conditions"]
        return found["status"], found["reason"], found["message"]

    async def ended(self, key: str) -> None:
        """Wait until a job has ended; then its object is in the queue."""
        await until_async(lambda: not self.jobs.running(key), f"{key} ends")
        assert not idle(self.loop.queue)

    async def analyses(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            await answer.write(b'{"progress": {"phase": "views", "done": 3, "total": 4}}\n')
            await self.gate.wait()
            await answer.write(json.dumps({"analysis": ANALYSIS}).encode() + b"\n")
        finally:
            self.broken_off.set()
        return answer


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[World]:
    socket = tmp_path / "monitor.sock"
    async with MonitorClient(socket=socket) as client:
        world = World(client)
        routes = {"/v1/analyses": world.analyses}
        async with listening(socket, routes):
            try:
                yield world
            finally:
                await world.jobs.close()


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
