# SPDX-License-Identifier: BSD-2-Clause
"""What the operator notes of a monitor that is slow, and of one that is not there."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control import member_observer
from shai_operator.control.member_observer import MemberObserver
from shai_operator.monitors import client
from shai_operator.monitors.client import MonitorClient
from testing.waiting import until_async
from tests.control.monitor_server import listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from shai_operator.control.authority import ClientTLS

ENDPOINT = "10.0.0.1:7600"
LIMIT_SECONDS = 30.0


async def test_a_slow_monitor_is_late_and_one_that_is_not_there_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "QUICK", aiohttp.ClientTimeout(total=0.05))  # of the metrics
    go = asyncio.Event()

    async def status(_: web.Request) -> web.Response:
        return web.json_response({"ready": True})

    async def metrics(_: web.Request) -> web.Response:
        await go.wait()
        return web.Response(text="")

    tls = ssl.create_default_context()
    members = MemberObserver(cast("ClientTLS", SimpleNamespace(context=lambda: tls)), lambda: None)
    seen, socket = members.of("a"), tmp_path / "monitor.sock"
    seen.client, seen.connection = MonitorClient(socket=socket), (ENDPOINT, tls)
    try:
        async with listening(socket, {"/v1/status": status, "/metrics": metrics}):
            members.look_at({"a": ENDPOINT}, 0.01)
            await until_async(lambda: seen.late > 1)
            assert (seen.monitor, seen.failures) == (None, seen.late)
            assert "does not answer" in seen.unreachable
            go.set()
            await until_async(lambda: seen.monitor is not None)
            assert (seen.late, seen.unreachable) == (0, "")
        socket.unlink(missing_ok=True)
        await until_async(lambda: seen.monitor is None and seen.failures > 1)
        assert seen.late == 0, "nothing listens there"
    finally:
        await members.close()


async def test_a_member_that_hangs_does_not_keep_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_observer, "_LATE_SECONDS", 0.05)
    asked = Counter[str]()

    def status(name: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(_: web.Request) -> web.Response:
            asked[name] += 1
            if name == "hangs":
                await asyncio.Event().wait()
            return web.json_response({"ready": True})

        return answer

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text="")

    tls = ssl.create_default_context()
    observer = MemberObserver(cast("ClientTLS", SimpleNamespace(context=lambda: tls)), lambda: None)
    async with contextlib.AsyncExitStack() as stack:
        for name in ("hangs", "answers"):
            socket = tmp_path / name
            await stack.enter_async_context(listening(socket, {"/v1/status": status(name), "/metrics": metrics}))
            seen = observer.of(name)
            seen.client, seen.connection = MonitorClient(socket=socket), (ENDPOINT, tls)
        stack.push_async_callback(observer.close)
        observer.look_at({"hangs": ENDPOINT, "answers": ENDPOINT}, 0.01)
        await until_async(lambda: asked["answers"] > 5)
        assert (asked["hangs"], observer.of("hangs").looked) == (1, False)


def nothing_listens() -> MemberObserver:
    tls = ssl.create_default_context()
    observer = MemberObserver(cast("ClientTLS", SimpleNamespace(context=lambda: tls)), lambda: None)
    observer.look_at({"a": "127.0.0.1:1"}, 600.0)
    return observer


@pytest.mark.parametrize("rounds", range(6))
async def test_a_look_that_is_wanted_just_before_the_end_does_not_go_on(rounds: int) -> None:
    observer = nothing_listens()
    await until_async(lambda: observer.of("a").failures > 0)
    observer.look_now()
    for _ in range(rounds):
        await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT_SECONDS) as limit:
        await observer.close()
    assert not limit.expired(), "it has not ended by itself"


async def test_who_is_ended_while_it_closes_is_ended() -> None:
    """Otherwise a worker of the operator's queue would go on when a pool goes while the operator stops."""
    observer = nothing_listens()
    closing = asyncio.create_task(observer.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await observer.close()
