# SPDX-License-Identifier: BSD-2-Clause
"""A pool with one member, for tests of the controllers of runs and benchmarks.

Monitors are real servers on unix sockets; statuses go straight into the inventory.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from shai_operator.control.jobs import Jobs
from shai_operator.control.loop import Loop
from shai_operator.monitors.client import MonitorClient
from shai_operator.reconcile.actions import Create, Plan, Requeue, SetStatus
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import Inventory, Reference, reference, status
from testing.waiting import until_async
from tests.control.monitor_server import listening
from tests.control.queues import idle
from tests.reconcile.builders import FOR_SEARCH, OWNED, condition, resource, space

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.sharding import Subject as SharedSubject
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.runs import Shards

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
