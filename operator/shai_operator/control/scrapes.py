# SPDX-License-Identifier: BSD-2-Clause
"""Answers scrapes without delaying reconciliations, however many there are.

The text is made in a thread, at most once a second. Each text answers a few scrapes, and only a few are answered at the
same time: sending takes the event loop's time, and a client that reads slowly holds its text in memory. Others are
refused.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from shai_operator.metrics import exposition
from shai_operator.metrics.counted import SCRAPES_REJECTED
from shai_operator.metrics.exposition import Format

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.metrics.samples import Snapshot

MOST = 8
"""How many scrapes get the same text, and how many are answered at the same time."""
_FRESH_SECONDS = 1.0
_WRITE_SECONDS = 10.0
_TOO_MANY = 503


@dataclass
class _Text:
    """A text that is being made, or has been."""

    task: asyncio.Task[bytes]
    made: float
    answers: int = 0
    """The scrapes that have got it."""


class Scrapes:
    """The answers to scrapes. ``take`` is called from the event loop."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._texts: dict[Format, _Text] = {}
        self._answering = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one scrape."""
        wanted = Format.accepted(request.headers.get("Accept", ""))
        text = self._present(wanted)
        if text is None:
            SCRAPES_REJECTED.inc()
            return web.Response(status=_TOO_MANY, text=f"more than {MOST} scrapes a second; scrape less often\n")
        self._answering += 1
        try:
            return await _send(request, wanted, await asyncio.shield(text))
        finally:
            self._answering -= 1

    def _present(self, wanted: Format) -> asyncio.Task[bytes] | None:
        """Return the text that is being made, or was made just now; None when there are too many scrapes."""
        now = time.monotonic()
        if self._answering >= MOST:
            return None
        last = self._texts.get(wanted)
        if last is None or (last.task.done() and now - last.made >= _FRESH_SECONDS):
            task = asyncio.create_task(asyncio.to_thread(exposition.text, self._take(), wanted))
            last = self._texts[wanted] = _Text(task, now)
        if last.answers >= MOST:
            return None
        last.answers += 1
        return last.task


async def _send(request: web.Request, wanted: Format, text: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": wanted.value, "Content-Length": str(len(text))})
    try:
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.prepare(request)
            await response.write(text)
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response
