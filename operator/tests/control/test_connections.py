# SPDX-License-Identifier: BSD-2-Clause
"""Anybody may connect to probes and metrics, and can take neither them nor the operator's descriptors from others."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control import connections, descriptors
from shai_operator.control.authority import ServerTLS
from shai_operator.control.connections import Connections
from shai_operator.metrics import counted
from shai_operator.providers import authority
from testing.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SAID = (b"", b"GET / HTTP/1.1\r\nHost:")
"""Nothing, and half a request."""


def made(tls: Callable[[], ssl.SSLContext] | None = None) -> tuple[Connections, asyncio.Event]:
    """Return what serves /, /long, which fits no buffer, and /slow, which is answered when the event is set."""
    go = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    async def slow(_: web.Request) -> web.Response:
        await go.wait()
        return web.Response(text="late")

    async def long(_: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    application = web.Application()
    application.add_routes([web.get("/", answer), web.get("/slow", slow), web.get("/long", long)])
    return Connections(application, counted.SCRAPES_REJECTED, tls=tls), go


@asynccontextmanager
async def serving(served: Connections) -> AsyncIterator[int]:
    """Serve on a free port of the loopback network; yield it."""
    (listening,) = connections.listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    async with served.serve([listening]):
        yield port


async def get(port: int, path: str = "") -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/{path}") as response:
        return await response.text()


def asked(path: str) -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


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
    async def read() -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()

    reading = asyncio.create_task(read())
    await until_async(reading.done, "the connection is closed", seconds=5.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close no connection because it is idle."""
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 3600.0)


@pytest.mark.parametrize("said", SAID)
async def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.01)
    async with serving(made()[0]) as port, opened(port, 1, said) as (idle,):
        await closed(idle)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("path", ["", "long"])
async def test_a_connection_is_closed_after_its_answer_taken_or_not(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.01)
    served, _ = made()
    async with serving(served) as port, opened(port, 1, asked(path)) as (reader,):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
        await until_async(lambda: not served._open(), "it has been closed", seconds=5.0)  # noqa: SLF001


@pytest.mark.usefixtures("patient")
async def test_who_waits_for_the_answer_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.01)
    served, go = made()
    async with (
        serving(served) as port,
        opened(port, 1, b"") as (idle,),
        opened(port, 1, asked("slow")) as (waiting,),
    ):
        await until_async(lambda: served._asking, "it is being answered")  # noqa: SLF001
        monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
        await closed(idle)
        async with opened(port, 1, b"") as (another,):
            await closed(another)
        monkeypatch.setattr(connections, "_IDLE_SECONDS", 3600.0)
        go.set()
        assert (await waiting.readline()).startswith(b"HTTP/1.1 200"), "a client would ask again"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("said", SAID)
async def test_connections_without_requests_make_room(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connections, "MOST", 8)
    before = counted.SCRAPES_REJECTED._value.get()  # noqa: SLF001 - the client library has no other way to read it
    async with serving(made()[0]) as port, opened(port, 20, said) as idle:
        assert await get(port) == "here"
        for first in idle[:12]:
            await closed(first)
        assert counted.SCRAPES_REJECTED._value.get() - before >= 12  # noqa: SLF001


@pytest.mark.usefixtures("patient")
async def test_the_last_answer_counts_and_not_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    served, go = made()
    async with serving(served) as port, opened(port, 1, asked("slow")) as (older,):
        await until_async(lambda: served._asking, "it is being answered")  # noqa: SLF001
        async with opened(port, 1, b"") as (younger,):
            await until_async(lambda: len(served._open()) == 2, "both are there")  # noqa: SLF001
            go.set()
            assert (await older.readline()).startswith(b"HTTP/1.1 200")
            async with opened(port, 1, b""):
                assert await get(port) == "here"
                await closed(younger)


async def test_after_an_error_others_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.01)
    errors = [OSError(errno.EMFILE, "too many descriptors")] * 3
    accept = socket.socket.accept

    def failing(listening: socket.socket) -> tuple[socket.socket, object]:
        if errors:
            raise errors.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", failing)
    async with serving(made()[0]) as port:
        answer = asyncio.create_task(get(port))
        await until_async(answer.done, "it is answered", seconds=5.0)
        assert answer.result() == "here"
    assert not errors


@pytest.mark.usefixtures("patient")
async def test_there_are_never_more_and_requests_are_not_ended_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 4)
    served, go = made()
    async with serving(served) as port, opened(port, 4, asked("slow")) as waiting:
        await until_async(lambda: len(served._asking) == 4, "all are being answered")  # noqa: SLF001
        others = [asyncio.create_task(get(port)) for _ in range(4)]
        async with opened(port, 4, b""):
            assert len(served._open()) == 4  # noqa: SLF001
            go.set()
            for reader in waiting:
                assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "a client would ask again"
            answers = asyncio.gather(*others)
            await until_async(answers.done, "all are answered", seconds=5.0)
            assert answers.result() == ["here"] * 4


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


@pytest.mark.usefixtures("patient")
async def test_who_asks_again_and_again_makes_room_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that were sent at once would keep the place for as long as there are any."""
    monkeypatch.setattr(connections, "MOST", 1)
    async with serving(made()[0]) as port, opened(port, 1, asked("") * 40) as (greedy,):
        answers = asyncio.create_task(greedy.read())
        await until_async(answers.done, "the connection is closed after an answer", seconds=5.0)
        assert answers.result().count(b"HTTP/1.1 200") == 1
        assert await get(port) == "here"


@pytest.mark.usefixtures("patient")
async def test_who_has_just_come_is_heard_before_another_takes_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 1)
    monkeypatch.setattr(connections, "_HEARD_SECONDS", 3600.0)
    async with serving(made()[0]) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with opened(port, 1, asked("")) as (another,):
            writer.write(asked(""))
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            assert (await another.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("encrypted", [False, True])
async def test_who_is_connected_when_it_ends_is_answered_once(tmp_path: Path, *, encrypted: bool) -> None:
    """The kernel has accepted it, so nobody else would answer."""
    root = authority.create()
    server = ServerTLS(root, "127.0.0.1", tmp_path).context if encrypted else None
    client = ssl.create_default_context(cadata=root.certificate) if encrypted else None
    (served, _), serve = made(server), contextlib.AsyncExitStack()
    port = await serve.enter_async_context(serving(served))
    with socket.create_connection(("127.0.0.1", port)) as early:
        await until_async(lambda: served._joining or served._new, "it has been accepted")  # noqa: SLF001
        ending = asyncio.create_task(serve.aclose())
        await until_async(lambda: served._once, "the end has begun")  # noqa: SLF001
        host = "127.0.0.1" if encrypted else None
        reader, writer = await asyncio.open_connection(sock=early, ssl=client, server_hostname=host)
        writer.write(asked("") * 2)
        assert (await reader.read()).count(b"HTTP/1.1 200") == 1
        await ending
        writer.close()


@pytest.mark.usefixtures("patient")
async def test_who_waits_to_be_accepted_when_it_ends_is_answered_and_nobody_waits_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST", 1)
    (served, go), serve = made(), contextlib.AsyncExitStack()
    port = await serve.enter_async_context(serving(served))
    async with opened(port, 1, asked("slow")) as (first,):
        await until_async(lambda: served._asking, "it is being answered")  # noqa: SLF001
        async with opened(port, 1, asked("")) as (second,):
            ending = asyncio.create_task(serve.aclose())
            assert (await second.readline()).startswith(b"HTTP/1.1 200")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
            go.set()
            assert (await first.readline()).startswith(b"HTTP/1.1 200")
            await ending


@pytest.mark.usefixtures("patient")
async def test_whose_answer_is_known_is_not_waited_for() -> None:
    served, _ = made()
    async with contextlib.AsyncExitStack() as clients:
        async with serving(served) as port:
            (idle,) = await clients.enter_async_context(opened(port, 1, asked("")))
            assert (await idle.readline()).startswith(b"HTTP/1.1 200")
            await until_async(lambda: not served._asking, "it has been answered")  # noqa: SLF001
        await closed(idle)


async def test_who_has_not_asked_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_ANSWER_SECONDS", 0.05)
    async with contextlib.AsyncExitStack() as clients:
        async with serving(made()[0]) as port:
            (idle,) = await clients.enter_async_context(opened(port, 1, b""))
        await closed(idle)
