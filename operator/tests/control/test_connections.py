# SPDX-License-Identifier: BSD-2-Clause
"""Anybody may connect to probes and metrics, and can take neither them nor the operator's descriptors from others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control import connections, descriptors
from shai_operator.control.connections import Connections
from shai_operator.metrics import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SAID = (b"", b"GET / HTTP/1.1\r\nHost:")
"""Nothing, and half a request."""


def made() -> tuple[Connections, asyncio.Event]:
    """Return what serves /, and /slow, which is answered when the event is set."""
    go = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    async def slow(_: web.Request) -> web.Response:
        await go.wait()
        return web.Response(text="late")

    application = web.Application()
    application.add_routes([web.get("/", answer), web.get("/slow", slow)])
    return Connections(application), go


async def get(port: int, path: str = "") -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/{path}") as response:
        return await response.text()


@asynccontextmanager
async def opened(port: int, count: int, said: bytes) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections one after the other, each of which says no more than this."""
    found = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in found:
        writer.write(said)
    try:
        yield [reader for reader, _ in found]
    finally:
        for _, writer in found:
            writer.close()


async def closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()


@pytest.mark.parametrize("said", SAID)
async def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.01)
    async with made()[0].serve("127.0.0.1", 0) as port, opened(port, 1, said) as (idle,):
        await closed(idle)


@pytest.mark.parametrize("said", SAID)
async def test_connections_without_requests_make_room(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connections, "MOST", 8)
    before = counted.SCRAPES_REJECTED._value.get()  # noqa: SLF001 - the client library has no other way to read it
    async with made()[0].serve("127.0.0.1", 0) as port, opened(port, 20, said) as idle:
        assert await get(port) == "here"
        for first in idle[:12]:
            await closed(first)
        assert counted.SCRAPES_REJECTED._value.get() - before >= 12  # noqa: SLF001


async def test_there_are_never_more_and_requests_are_not_ended_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 4)
    served, go = made()
    async with served.serve("127.0.0.1", 0) as port:
        waiting = [asyncio.create_task(get(port, "slow")) for _ in range(4)]
        while len(served._asking) < 4:  # noqa: SLF001
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(get(port)) for _ in range(4)]
        async with opened(port, 4, b""):
            assert len(served._open()) == 4  # noqa: SLF001
            go.set()
            assert await asyncio.gather(*waiting, *others) == ["late"] * 4 + ["here"] * 4


def test_the_soft_limit_of_descriptors_is_raised() -> None:
    text = (
        "import resource; from shai_operator.control import descriptors; resource.setrlimit(resource.RLIMIT_NOFILE,"
        " (256, 1024)); descriptors.raise_limit(); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(descriptors.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    assert done.stdout == "1024 1024\n"
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 1024
    assert connections.MOST * 16 < descriptors.ENOUGH
