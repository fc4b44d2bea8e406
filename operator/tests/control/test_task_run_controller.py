# SPDX-License-Identifier: BSD-2-Clause
"""What members answer about the attempts of TaskRuns. The monitor is a real server; the API server is stood in for."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web

from shai_operator.control.jobs import Jobs
from shai_operator.control.loop import Loop
from shai_operator.control.task_run_controller import TaskRunController
from shai_operator.control.task_runner import TaskRunner
from shai_operator.monitors.client import MonitorClient
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import FINALIZER, reference, status
from testing.waiting import until_async
from tests.control.monitor_server import listening
from tests.control.run_world import Written
from tests.reconcile.builders import FOR_SEARCH, OWNED, inventory, resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.member_observer import MemberObserver

MONITOR = Monitor(ready=True, started="s0", tasks={("p", "index"): "Succeeded"})
RUN = resource("TaskRun", "r", {"pipeline": "p", "task": "index", "trigger": "Manual"}, finalizers=[FINALIZER])
JOB = "task run/uid-r-1"


class World:
    """A member whose monitor answers requests for runs with what ``answers`` has for their method."""

    def __init__(self, client: MonitorClient) -> None:
        self.client = client
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {}
        self.asked: list[str] = []
        row = {"name": "default-0", "ordinal": 0, **OWNED}
        self.inventory = inventory(
            resource("JailPool", "default", FOR_SEARCH, {"members": [row]}),
            resource("Pipeline", "p", {"tasks": ["index"]}),
            resource("Task", "index", {"run": "Once"}),
            RUN,
        )
        executor = cast("Executor", Written(self.inventory))
        self.jobs = Jobs()
        self.loop = Loop(self.inventory, executor)
        runner = TaskRunner(self.loop, executor)
        self.controller = TaskRunController(self.loop, executor, self.jobs, self, runner)

    def members(self, pool: str) -> MemberObserver | None:
        del pool
        seen = SimpleNamespace(monitor=MONITOR, unreachable="")
        return cast("MemberObserver", SimpleNamespace(of=lambda _: seen, client=lambda _: self.client))

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.match_info['run']} {request.query['started']}")
        code, body = self.answers[request.method]
        return web.json_response(body, status=code)

    async def look(self) -> tuple[str, str, str]:
        """Reconcile, wait for what a member answers, and return the condition that follows from it."""
        for _ in range(3):
            await self.controller.reconcile(reference(RUN))
        await until_async(lambda: not self.jobs.running(JOB))
        await self.controller.reconcile(reference(RUN))
        (found,) = status(self.inventory.get(reference(RUN)) or {})["conditions"]
        return found["status"], found["reason"], found["message"]


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[World]:
    socket = tmp_path / "monitor.sock"
    async with MonitorClient(socket=socket) as client:
        world = World(client)
        async with listening(socket, {"/v1/pipelines/p/tasks/index/runs/{run}": world.answer}):
            try:
                yield world
            finally:
                await world.jobs.close()


def problem(code: int, detail: str) -> tuple[int, dict[str, Any]]:
    return code, {"title": "start run", "status": code, "detail": detail}


GOES_ON = 200, {"state": "Running"}
FAILED = 200, {"state": "Failed", "exitStatus": 3, "message": "exited with status 3"}
UNKNOWN = problem(404, "no such run")


@pytest.mark.parametrize(
    ("start", "wait", "expected"),
    [
        (GOES_ON, (200, {"state": "Succeeded", "exitStatus": 0}), ("True", "Complete", "it succeeded")),
        (GOES_ON, FAILED, ("False", "Failed", "exited with status 3")),
        (problem(409, "it may not read /b"), FAILED, ("False", "Failed", "exited with status 3")),
        (problem(409, "another run goes on"), UNKNOWN, ("Unknown", "Queued", "another run goes on")),
        (problem(412, "anew"), UNKNOWN, ("False", "Interrupted", "started anew")),
        (UNKNOWN, UNKNOWN, ("False", "Stopped", "does not have the task in force")),
        (problem(400, "a bad name"), UNKNOWN, ("False", "Failed", "a bad name")),
    ],
)
async def test_what_a_member_answers(
    tmp_path: Path,
    start: tuple[int, dict[str, Any]],
    wait: tuple[int, dict[str, Any]],
    expected: tuple[str, str, str],
) -> None:
    async with serving(tmp_path) as world:
        world.answers = {"PUT": start, "GET": wait}
        found = await world.look()
        assert (found[:2], expected[2] in found[2]) == (expected[:2], True), found
        assert world.asked[0] == "PUT uid-r-1 s0"


async def test_where_a_monitor_is_that_does_not_answer_is_not_for_authors(tmp_path: Path) -> None:
    async with serving(tmp_path) as world, MonitorClient(socket=tmp_path / "gone.sock") as gone:
        world.client = gone
        found = await world.look()
        assert found[:2] == ("Unknown", "Running")
        assert "does not answer or is not ready, of which the JailPool's status says more" in found[2]
        assert "gone.sock" not in json.dumps(world.inventory.get(reference(RUN)))


@pytest.mark.parametrize("named", [True, False])
async def test_no_member_of_another_namespace_is_asked_whatever_it_has_in_force(tmp_path: Path, *, named: bool) -> None:
    async with serving(tmp_path) as world:
        world.answers = {"PUT": GOES_ON, "GET": (200, {"state": "Succeeded", "exitStatus": 0})}
        foreign = {"name": "default-0", "ordinal": 0, "namespace": "other", "namespaceUID": "uid-other-1"}
        world.inventory.put(resource("JailPool", "default", FOR_SEARCH, {"members": [foreign]}))
        if named:
            world.inventory.put({**RUN, "spec": {**RUN["spec"], "member": "default-0"}})
        found = await world.look()
        assert (found[:2], world.asked) == (("Unknown", "Pending"), [])
        assert found[2].count("default-0") == int(named), "other namespaces' members are not named"
