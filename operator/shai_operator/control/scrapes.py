# SPDX-License-Identifier: BSD-2-Clause
"""Answers scrapes without delaying reconciliations, however many there are, and without refusing one.

The text is made in a thread, which rests after it for many times as long as it took. Scrapes in between get the last
text. Answers begin one after the other with a pause in between, in the order of the requests: sending takes the event
loop's time, and a program that asks without end takes its turn as others do.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from shai_operator.metrics import exposition
from shai_operator.metrics.exposition import Format

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.metrics.samples import Snapshot

REST = 20
"""After a text was made, none is made for so many times as long as that took, within these limits:"""
_LEAST_SECONDS, _MOST_SECONDS = 1.0, 30.0
_PAUSE_SECONDS = 0.01
_WRITE_SECONDS = 5.0
_PART = 1 << 16
"""No more is handed to the event loop at once: what a slow client has not read is kept in memory."""


@dataclass
class _Text:
    """A text, and until when it is sent, by the monotonic clock."""

    content: bytes
    ends: float


class Scrapes:
    """The answers to scrapes. ``take`` is called from the event loop."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._last: dict[Format, _Text] = {}
        self._making: dict[Format, asyncio.Task[bytes]] = {}
        self._turn = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one scrape."""
        wanted = Format.accepted(request.headers.get("Accept", ""))
        async with self._turn:
            await asyncio.sleep(_PAUSE_SECONDS)
        return await _send(request, wanted, await self._present(wanted))

    async def _present(self, wanted: Format) -> bytes:
        """Return the last text, or else one that is made for all who wait."""
        last = self._last.get(wanted)
        if last is not None and time.monotonic() < last.ends:
            return last.content
        if wanted not in self._making:
            self._making[wanted] = asyncio.create_task(self._make(wanted))
        return await asyncio.shield(self._making[wanted])

    async def _make(self, wanted: Format) -> bytes:
        begun = time.monotonic()
        try:
            content = await asyncio.to_thread(exposition.text, self._take(), wanted)
        finally:
            del self._making[wanted]
        done = time.monotonic()
        self._last[wanted] = _Text(content, done + min(max(_LEAST_SECONDS, REST * (done - begun)), _MOST_SECONDS))
        return content


async def _send(request: web.Request, wanted: Format, text: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": wanted.value, "Content-Length": str(len(text))})
    try:
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.prepare(request)
            for start in range(0, len(text), _PART):
                await response.write(text[start : start + _PART])
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response
