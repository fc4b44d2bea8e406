# SPDX-License-Identifier: BSD-2-Clause
"""A monitor that ends while it compares or takes a bundle has refused nothing. The monitor is a real server."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web

from shai_operator.control.deployer import Deployer
from shai_operator.control.jobs import Jobs
from shai_operator.control.loop import Loop
from shai_operator.monitors.client import MonitorClient
from shai_operator.reconcile import bundles
from shai_operator.reconcile.members import ApplyBundle, Place
from shai_operator.reconcile.objects import Inventory
from shai_operator.reconcile.pools import CompareBundles
from testing.waiting import until_async
from tests.control.monitor_server import Observer, listening
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from shai_operator.control.executor import Executor
    from shai_operator.control.services import Services

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POOL = resource("JailPool", "main", {})
MEMBER = Place("main-0", 0, "h0", "127.0.10.1")
BUNDLE = bundles.Bundle(bundles.release("main", "search", (), {}), bundles.facts([]))
COMPARE = CompareBundles("search", MEMBER.name, "before", BUNDLE)


async def ends(request: web.Request) -> web.StreamResponse:
    """Begin to answer, and end like a monitor that is killed."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b'{"progress": {"phase": "views", "done": 1}}\n')
    if request.transport is not None:
        request.transport.abort()
    return answer


def says(code: int, detail: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"title": "apply", "status": code, "detail": detail}, status=code)

    return handler


async def compares(_: web.Request) -> web.Response:
    return web.Response(text=json.dumps({"comparison": {"flowsBefore": 7}}) + "\n")


class World:
    """A member, and what is asked of it."""

    def __init__(self, client: MonitorClient) -> None:
        self.jobs = Jobs()
        self.members = Observer(client)
        self.asked = 0
        self.answer: Handler = ends
        services: Any = SimpleNamespace(jobs=self.jobs, loop=Loop(Inventory(), cast("Executor", None)))
        self.deployer = Deployer(cast("Services", services), self.members)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        return await self.answer(request)

    async def compare(self) -> None:
        self.deployer.compare(POOL, COMPARE)
        await until_async(lambda: not self.jobs.running("main/compare/search"))

    async def apply(self) -> None:
        self.deployer.apply(POOL, ApplyBundle(MEMBER, BUNDLE))
        await until_async(lambda: not self.jobs.running("main/apply/main-0"))


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[World]:
    socket = tmp_path / "monitor.sock"
    async with MonitorClient(socket=socket) as client:
        world = World(client)
        async with listening(socket, {"/v1/comparisons": world.handle, "/v1/bundles": world.handle}):
            try:
                yield world
            finally:
                await world.jobs.close()


@pytest.mark.parametrize("answer", [ends, says(503, "context canceled")], ids=["killed", "stopping"])
async def test_a_monitor_that_ends_while_it_compares_is_asked_again(
    tmp_path: Path, answer: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as world:
        world.answer = answer
        await world.compare()
        await world.compare()
        assert (world.asked, world.deployer.comparison_refusals) == (1, {}), "after a while, not at once"
        world.answer = compares
        monkeypatch.setattr("shai_operator.reconcile.members._FIRST_RETRY_SECONDS", 0)
        await world.compare()
        assert world.deployer.effects["search"].after == BUNDLE.release.name


async def test_a_monitor_that_refuses_to_compare_is_believed(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        world.answer = says(400, "line 1: does not parse")
        await world.compare()
        assert "does not parse" in world.deployer.comparison_refusals[BUNDLE.release.name]


@pytest.mark.parametrize(
    ("answer", "refused"),
    [(ends, None), (says(503, "the source does not answer"), False), (says(400, "does not parse"), True)],
    ids=["killed", "without a source", "refused"],
)
async def test_only_what_a_bundle_contains_is_refused(tmp_path: Path, answer: Handler, *, refused: bool | None) -> None:
    async with serving(tmp_path) as world:
        world.answer = answer
        await world.apply()
        found = world.members.of(MEMBER.name).refused.get(BUNDLE.label)
        assert (None if found is None else not found.passing) == refused
