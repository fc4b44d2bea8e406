# SPDX-License-Identifier: BSD-2-Clause
"""Scrapes: however many come and however slowly they are read, the event loop goes on, and all are answered."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control import scrapes
from shai_operator.control.scrapes import REST, Scrapes
from shai_operator.metrics import exposition
from shai_operator.metrics.exposition import Format
from shai_operator.metrics.samples import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp.typedefs import Handler

NOTHING = Snapshot(objects={})


class Texts:
    """Stands for the text; it is made when the gate opens."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.begun = self.made = 0
        self.gate = threading.Event()

    def __call__(self, _: Snapshot, wanted: Format) -> bytes:
        self.begun += 1
        self.gate.wait()
        self.made += 1
        return self.text if wanted is Format.PLAIN else b"# EOF\n"


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Texts:
    made = Texts(b"shai_up 1\n")
    monkeypatch.setattr(exposition, "text", made)
    return made


@asynccontextmanager
async def served(answer: Handler) -> AsyncIterator[int]:
    application = web.Application()
    application.add_routes([web.get("/metrics", answer)])
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


async def test_a_flood_is_one_text_and_everybody_gets_it(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "_LEAST_SECONDS", scrapes._MOST_SECONDS)  # noqa: SLF001
    async with served(Scrapes(lambda: NOTHING).answer) as port:
        flood = [asyncio.create_task(scrape(port)) for _ in range(100)]
        while not texts.begun:
            await asyncio.sleep(0.01)  # the loop goes on while the text is made
        early = texts.made
        texts.gate.set()
        answers = await asyncio.gather(*flood)
    assert answers == [(200, "shai_up 1\n")] * 100
    assert (early, texts.made) == (0, 1)


async def test_a_program_that_asks_without_end_does_not_starve_another(texts: Texts) -> None:
    """It asks on connections that it keeps, as fast as it gets answers."""
    texts.gate.set()
    asked = asyncio.Event()

    async def flood(port: int) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as response:
                    await response.read()
                asked.set()

    async with served(Scrapes(lambda: NOTHING).answer) as port, asyncio.TaskGroup() as tasks:
        flooding = [tasks.create_task(flood(port)) for _ in range(20)]
        await asked.wait()
        found = [await scrape(port) for _ in range(10)]
        for task in flooding:
            task.cancel()
    assert found == [(200, "shai_up 1\n")] * 10


async def test_making_texts_takes_a_small_share_of_the_time(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    now, took = 1000.0, 0.5

    def slow(snapshot: Snapshot, wanted: Format) -> bytes:
        nonlocal now
        now += took
        return texts(snapshot, wanted)

    texts.gate.set()
    monkeypatch.setattr(exposition, "text", slow)
    monkeypatch.setattr(scrapes, "time", SimpleNamespace(monotonic=lambda: now))
    async with served(Scrapes(lambda: NOTHING).answer) as port:
        for wait, made in ((0.0, 1), (REST * took - 0.1, 1), (0.2, 2)):
            now += wait
            assert (await scrape(port))[0] == 200
            assert texts.made == made, wait
        took = 600.0  # the limit of a text's age
        now += REST
        assert (await scrape(port))[0] == 200
        now += 30.0
        assert (await scrape(port))[0] == 200
        assert texts.made == 4


async def test_a_client_that_does_not_read_is_given_up(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts.text = bytes(64 << 20)
    texts.gate.set()
    monkeypatch.setattr(scrapes, "_WRITE_SECONDS", 0.5)
    answers, given_up = Scrapes(lambda: NOTHING), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await answers.answer(request)
        given_up.set()
        return response

    async with served(answer) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        await given_up.wait()
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < len(texts.text)
        writer.close()


async def test_a_text_that_cannot_be_made_is_an_error_and_is_made_again(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.gate.set()

    def broken(_: Snapshot, wanted: Format) -> bytes:
        raise ValueError(f"no text in {wanted}")

    async with served(Scrapes(lambda: NOTHING).answer) as port:
        monkeypatch.setattr(exposition, "text", broken)
        assert (await scrape(port))[0] == 500
        monkeypatch.setattr(exposition, "text", texts)
        assert (await scrape(port))[0] == 200


async def test_the_format_is_the_one_that_the_client_prefers(texts: Texts) -> None:
    texts.gate.set()
    prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    async with served(Scrapes(lambda: NOTHING).answer) as port:
        assert (await scrape(port, prometheus))[1] == "# EOF\n"
        assert (await scrape(port, "text/plain"))[1] == "shai_up 1\n"
