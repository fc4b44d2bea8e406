# SPDX-License-Identifier: BSD-2-Clause
"""Scrapes: however many come and however slowly they are read, the event loop goes on."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control import scrapes
from shai_operator.control.scrapes import MOST, Scrapes
from shai_operator.metrics import counted, exposition
from shai_operator.metrics.exposition import Format
from shai_operator.metrics.samples import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOTHING = Snapshot(objects={})


class Texts:
    """Stands for the text; it is made when the gate opens."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.made = 0
        self.gate = threading.Event()

    def __call__(self, _: Snapshot, wanted: Format) -> bytes:
        self.gate.wait()
        self.made += 1
        return self.text if wanted is Format.PLAIN else b"# EOF\n"


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Texts:
    made = Texts(b"shai_up 1\n")
    monkeypatch.setattr(exposition, "text", made)
    return made


@asynccontextmanager
async def served(answers: Scrapes) -> AsyncIterator[int]:
    application = web.Application()
    application.add_routes([web.get("/metrics", answers.answer)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def scrape(port: int, accept: str = "*/*") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession(headers={"Accept": accept}) as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as response,
    ):
        return response.status, await response.text()


async def status(port: int) -> int:
    """Read no more than the first line of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    try:
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


async def test_a_flood_is_one_text_and_a_few_answers(texts: Texts) -> None:
    rejected = counted.SCRAPES_REJECTED._value.get()  # noqa: SLF001 - the client library has no other way to read it
    async with served(Scrapes(lambda: NOTHING)) as port:
        flood = [asyncio.create_task(scrape(port)) for _ in range(100)]
        while counted.SCRAPES_REJECTED._value.get() - rejected < 100 - MOST:  # noqa: SLF001
            await asyncio.sleep(0.01)  # the loop goes on while the text is made
        early = texts.made
        texts.gate.set()
        answers = await asyncio.gather(*flood)
    assert sorted(status for status, _ in answers) == [200] * MOST + [503] * (100 - MOST)
    assert {text for status, text in answers if status == 200} == {"shai_up 1\n"}
    assert (early, texts.made) == (0, 1)


async def test_scrapes_one_after_the_other_share_a_text_for_a_while(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.gate.set()
    now = 1000.0
    monkeypatch.setattr(scrapes, "time", SimpleNamespace(monotonic=lambda: now))
    async with served(Scrapes(lambda: NOTHING)) as port:
        assert [(await scrape(port))[0] for _ in range(MOST + 2)] == [200] * MOST + [503] * 2
        first = texts.made
        now += 1.0
        assert (await scrape(port))[0] == 200
        assert (first, texts.made) == (1, 2)


async def test_a_client_that_does_not_read_is_given_up(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts.text, texts.gate = bytes(64 << 20), threading.Event()
    texts.gate.set()
    monkeypatch.setattr(scrapes, "_WRITE_SECONDS", 1.0)
    answers = Scrapes(lambda: NOTHING)
    async with served(answers) as port:
        lazy = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST)]
        for connection in lazy:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        while await status(port) != 503:  # until all of them are being answered
            await asyncio.sleep(0.01)
        while await status(port) != 200:  # until one of them has been given up
            await asyncio.sleep(0.01)
        for connection in lazy:
            connection.close()


async def test_a_text_that_cannot_be_made_is_an_error_and_is_made_again(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.gate.set()
    monkeypatch.setattr(scrapes, "_FRESH_SECONDS", 0.0)

    def broken(_: Snapshot, wanted: Format) -> bytes:
        raise ValueError(f"no text in {wanted}")

    async with served(Scrapes(lambda: NOTHING)) as port:
        monkeypatch.setattr(exposition, "text", broken)
        assert (await scrape(port))[0] == 500
        monkeypatch.setattr(exposition, "text", texts)
        assert (await scrape(port))[0] == 200


async def test_the_format_is_the_one_that_the_client_prefers(texts: Texts) -> None:
    texts.gate.set()
    prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    async with served(Scrapes(lambda: NOTHING)) as port:
        assert (await scrape(port, prometheus))[1] == "# EOF\n"
        assert (await scrape(port, "text/plain"))[1] == "shai_up 1\n"
