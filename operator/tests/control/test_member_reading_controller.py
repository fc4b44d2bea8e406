# SPDX-License-Identifier: BSD-2-Clause
"""What members answer to readings. The monitor is a real server; the API server is stood in for."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web

from shai_operator.control.jobs import Jobs
from shai_operator.control.loop import Loop
from shai_operator.control.member_reading_controller import MemberReadingController
from shai_operator.monitors.client import MonitorClient
from shai_operator.reconcile.members import Monitor
from shai_operator.reconcile.objects import Inventory, reference, status
from testing.waiting import until_async
from tests.control.monitor_server import listening
from tests.control.run_world import Written
from tests.reconcile.builders import FOR_SEARCH, OWNED, resource, space

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.member_observer import MemberObserver

MONITOR = Monitor(ready=True, started="s0")
READING = resource(
    "MemberReading", "one", {"user": "olga", "publicKey": "a2V5", "pipeline": "p", "log": {"task": "index"}}
)
PRIVATE = "no space on /srv/disk-7 of rack-2"


class World:
    """A member whose monitor has one answer for readings."""

    def __init__(self, client: MonitorClient) -> None:
        self.client = client
        self.answer: tuple[int, dict[str, Any]] = 200, {"sealed": "c2VhbGVk"}
        self.asked: list[Any] = []
        self.looked = True
        self.inventory = Inventory()
        for obj in (
            space("search"),
            resource(
                "JailPool", "default", FOR_SEARCH,
                {"members": [{"name": "default-0", "ordinal": 0, **OWNED}], "namespaces": []},
            ),
            resource("Pipeline", "p", {"tasks": ["index"], "pool": "default"}),
            READING,
        ):  # fmt: skip
            self.inventory.put(obj)
        executor = cast("Executor", Written(self.inventory))
        self.jobs = Jobs()
        self.controller = MemberReadingController(Loop(self.inventory, executor), executor, self.jobs, self)

    def members(self, pool: str) -> MemberObserver | None:
        assert pool == "default"
        seen = SimpleNamespace(monitor=MONITOR, unreachable="")
        observer = SimpleNamespace(of=lambda _: seen, client=lambda _: self.client, all_looked_at=lambda: self.looked)
        return cast("MemberObserver", observer)

    async def respond(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        code, body = self.answer
        return web.json_response(body, status=code)

    async def look(self) -> tuple[str, str]:
        """Reconcile, wait for what the member answers, and return the condition that follows from it."""
        await self.controller.reconcile(reference(READING))
        await until_async(lambda: not self.jobs.running("reading/uid-one"))
        await self.controller.reconcile(reference(READING))
        (found,) = self.status()["conditions"]
        return found["status"], found["reason"]

    def status(self) -> dict[str, Any]:
        return dict(status(self.inventory.get(reference(READING)) or {}))


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[World]:
    socket = tmp_path / "monitor.sock"
    async with MonitorClient(socket=socket) as client:
        world = World(client)
        async with listening(socket, {"/v1/readings": world.respond}):
            try:
                yield world
            finally:
                await world.jobs.close()


async def test_a_question_is_passed_on_and_a_sealed_answer_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        assert await world.look() == ("True", "Complete")
        assert world.status()["sealed"] == "c2VhbGVk"
        await world.look()
        assert world.asked == [{"reader": "olga", "recipient": "a2V5", "log": {"task": "index", "pipeline": "p"}}]


@pytest.mark.parametrize(
    ("code", "reason"),
    [(503, "NotRecorded"), (500, "Refused"), (404, "Refused"), (403, "Refused"), (200, "Unreachable")],
)
async def test_what_a_member_says_of_itself_is_not_passed_on(tmp_path: Path, code: int, reason: str) -> None:
    """What is no sealed answer, and what its disk has, readers do not see."""
    async with serving(tmp_path) as world:
        world.answer = code, {"title": "read", "status": code, "detail": PRIVATE, "sealed": "<not sealed>"}
        assert await world.look() == ("False", reason)
        assert PRIVATE not in json.dumps(world.status())
        assert "sealed" not in world.status()


async def test_where_a_monitor_is_that_does_not_answer_is_not_for_readers(tmp_path: Path) -> None:
    async with serving(tmp_path) as world, MonitorClient(socket=tmp_path / "gone.sock") as gone:
        world.client = gone
        assert await world.look() == ("False", "Unreachable")
        assert "gone.sock" not in json.dumps(world.status())


async def test_an_operator_that_has_not_looked_at_the_members_waits(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        world.looked = False
        assert await world.look() == ("Unknown", "Pending")
        assert world.asked == []


async def test_the_answer_for_a_reading_that_is_gone_goes_nowhere(tmp_path: Path) -> None:
    """Neither to another one with its name, nor does it stay in memory."""
    async with serving(tmp_path) as world:
        await world.controller.reconcile(reference(READING))
        await until_async(lambda: not world.jobs.running("reading/uid-one"))
        metadata = {**READING["metadata"], "uid": "another"}
        world.inventory.remove(reference(READING))
        world.inventory.put({**READING, "metadata": metadata, "spec": {**READING["spec"], "publicKey": "b3RoZXI"}})
        await world.controller.reconcile(reference(READING))
        assert "sealed" not in world.status()
        assert world.jobs.get("reading/uid-one") is None
        await until_async(lambda: not world.jobs.running("reading/another"))
        await world.controller.reconcile(reference(READING))
        assert [one["recipient"] for one in world.asked] == ["a2V5", "b3RoZXI"]
