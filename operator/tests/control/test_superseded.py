# SPDX-License-Identifier: BSD-2-Clause
"""A bringUp that another job supersedes ends, whether its tasks do or not. The monitor is a real server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp import web

from shai_operator.control.deployer import Deployer
from shai_operator.control.jobs import Job, Jobs
from shai_operator.control.loop import Loop
from shai_operator.control.member_observer import MemberObserver
from shai_operator.monitors.client import MonitorClient
from shai_operator.reconcile import bundles
from shai_operator.reconcile.members import ApplyBundle, BringUp, Monitor, PipelineTasks, Place
from shai_operator.reconcile.objects import Inventory
from testing.waiting import until_async
from tests.control.monitor_server import Observer, listening
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from shai_operator.control.authority import ClientTLS
    from shai_operator.control.executor import Executor
    from shai_operator.control.services import Services

POOL = resource("JailPool", "main", {})
MEMBER = Place("main-0", 0, "h0", "127.0.10.1")
READY = Monitor(ready=True, tasks={}, analyzed=frozenset({"p"}))
APPLY = ApplyBundle(MEMBER, bundles.Bundle(bundles.release("main", "search", (), {}), bundles.facts([])))


class World:
    """A member, and the requests for its tasks. Task ``endless`` lasts until ``gate`` is set."""

    def __init__(self, client: MonitorClient) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.jobs = Jobs()
        self.members = Observer(client)
        services = SimpleNamespace(jobs=self.jobs, loop=Loop(Inventory(), cast("Executor", None)), runner=self)
        self.deployer = Deployer(cast("Services", services), self.members)

    def bring_up(self, *, once: tuple[str, ...] = (), always: tuple[str, ...] = ()) -> Job:
        self.deployer.bring_up(POOL, BringUp(MEMBER, (PipelineTasks("p", once, always),)), READY)
        return self.job()

    def apply(self) -> Job:
        self.deployer.apply(POOL, APPLY)
        return self.job()

    def unfinished(self, space: str, pipeline: str, task: str, member: str) -> bool:
        """In the place of the runner: nothing goes on."""
        del space, pipeline, task, member
        return False

    async def run(self, space: str, pipeline: str, task: str, member: str) -> str:
        """In the place of the runner: run a task to its end."""
        del space, pipeline, member
        self.asked.append(f"{task}:run")
        if task == "endless":
            await self.gate.wait()
        return ""

    def job(self) -> Job:
        _, job = self.members.of(MEMBER.name).job or ("", None)
        assert job is not None
        return job

    async def task(self, request: web.Request) -> web.Response:
        asked = request.match_info["asked"]
        self.asked.append(asked)
        if asked == "gone:wait" and request.transport is not None:
            request.transport.abort()
        return web.json_response({"state": "Running" if asked.startswith("server") else "Succeeded"})


async def status(_: web.Request) -> web.Response:
    return web.json_response({"ready": True, "pipelines": [{"name": "p", "lastAnalysis": {"succeeded": True}}]})


async def applied(_: web.Request) -> web.Response:
    return web.json_response({})


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[World]:
    socket = tmp_path / "monitor.sock"
    async with MonitorClient(socket=socket) as client:
        world = World(client)
        routes = {"/v1/pipelines/p/tasks/{asked}": world.task, "/v1/bundles": applied, "/v1/status": status}
        async with listening(socket, routes):
            try:
                yield world
            finally:
                await world.jobs.close()


async def test_a_bring_up_ends_when_another_bundle_is_put_in_force(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        before = world.bring_up(once=("endless",), always=("server",))
        await until_async(lambda: world.asked == ["endless:run"])
        swap = world.apply()
        await until_async(lambda: swap.done)
        after = world.bring_up(once=("other",))
        assert after is not before, "the next bundle's tasks are started, not the last one's waited for"
        await until_async(lambda: after.done)
        world.gate.set()
        assert before.done
        assert world.asked[1:] == ["other:run"]
        assert world.members.of(MEMBER.name).bring_up_failed is None


async def test_a_bring_up_goes_through_its_tasks_when_nothing_supersedes_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        job = world.bring_up(once=("endless",), always=("server",))
        await until_async(lambda: "endless:run" in world.asked)
        world.gate.set()
        await until_async(lambda: job.done)
        assert world.asked == ["endless:run", "server:start", "server:wait"]


async def test_where_a_monitor_is_that_breaks_off_is_not_for_authors(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        job = world.bring_up(always=("gone",))
        await until_async(lambda: job.done)
        failed = world.members.of(MEMBER.name).bring_up_failed
        assert failed is not None
        assert "monitor.sock" in failed.message
        assert failed.confidential


@pytest.mark.parametrize(("kind", "ends"), [("bringUp", True), ("apply", False), ("provision", False)])
def test_only_a_bring_up_is_superseded(kind: str, *, ends: bool) -> None:
    def busy() -> tuple[MemberObserver, Job]:
        members, job = MemberObserver(cast("ClientTLS", None), lambda: None), Job()
        members.began("a", kind, job)
        return members, job

    members, job = busy()
    members.began("a", kind, job)
    assert not job.cancel.is_set(), "a job does not supersede itself"
    members.began("a", "provision", Job())
    assert job.cancel.is_set() == ends
    members, job = busy()
    members.dismiss("a")
    assert job.cancel.is_set() == ends
