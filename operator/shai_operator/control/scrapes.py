# SPDX-License-Identifier: BSD-2-Clause
"""Answers scrapes without delaying reconciliations, however many there are.

The text is made in a thread, at most once a second. Each text answers a few scrapes, and only a few are answered at the
same time: sending takes the event loop's time, and a client that reads slowly holds its text in memory. Others are
refused.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from shai_operator.metrics import exposition
from shai_operator.metrics.counted import SCRAPES_REJECTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.metrics.samples import Snapshot

MOST = 8
"""How many scrapes get the same text, and how many are answered at the same time."""
_FRESH_SECONDS = 1.0
_WRITE_SECONDS = 10.0
_TOO_MANY = 503


class Scrapes:
    """The answers to scrapes. ``take`` is called from the event loop."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._text: asyncio.Task[bytes] | None = None
        self._made = 0.0
        self._answered = 0
        """The scrapes that have got the text."""
        self._answering = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one scrape."""
        text = self._present()
        if text is None:
            SCRAPES_REJECTED.inc()
            return web.Response(status=_TOO_MANY, text=f"more than {MOST} scrapes a second; scrape less often\n")
        self._answering += 1
        try:
            return await _send(request, await asyncio.shield(text))
        finally:
            self._answering -= 1

    def _present(self) -> asyncio.Task[bytes] | None:
        """Return the text that is being made, or was made just now; None when there are too many scrapes."""
        now = time.monotonic()
        if self._answering >= MOST:
            return None
        if self._text is None or (self._text.done() and now - self._made >= _FRESH_SECONDS):
            self._made, self._answered = now, 0
            self._text = asyncio.create_task(asyncio.to_thread(exposition.text, self._take()))
        if self._answered >= MOST:
            return None
        self._answered += 1
        return self._text


async def _send(request: web.Request, text: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE_LATEST, "Content-Length": str(len(text))})
    try:
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.prepare(request)
            await response.write(text)
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response
