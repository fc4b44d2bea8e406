# SPDX-License-Identifier: BSD-2-Clause
"""Reads answers that are streams of lines: the progress of something, and then its result or a problem.

A monitor reports progress as often as it likes. One line a second is parsed, all others are dropped unread, and the
stream is read no faster than monitors write.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from shai_operator.monitors import answers, shapes
from shai_operator.monitors.errors import MonitorAnswerError, MonitorUnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    import aiohttp

    from shai_operator.monitors.answers import Most

BYTES_PER_SECOND, LINES_PER_SECOND = 1 << 20, 4096
"""How fast progress is read. A monitor writes a line of some 60 bytes for every 256 instances that it has analysed."""
PROGRESS_SECONDS = 1.0
"""How long no further progress is parsed after a line of it."""
_PROGRESS = b'{"progress"'
"""How a monitor begins these lines, and no others."""
_LINE = answers.Most(4096, 64)
_AHEAD_SECONDS = 0.05
"""Sleeps are not shorter than this, because timers are not exact."""


async def result(
    answer: aiohttp.ClientResponse,
    name: str,
    most: Most,
    progress: Callable[[Mapping[str, Any]], None],
    what: str,
    *,
    large: asyncio.Semaphore,
) -> Any:
    """Return the value of the field ``name`` in the last line, and tell progress until then.

    ``large`` is as of `answers.Room`. The problem that the last line has is raised. MonitorAnswerError when a line is
    something else, or is too long; MonitorUnreachableError when the stream ends before.
    """
    async with answers.Room(large) as room, contextlib.aclosing(_lines(answer, most, what, room)) as lines:
        return await _last(lines, name, most, progress, what, status=answer.status)


async def _last(
    lines: AsyncIterator[bytes],
    name: str,
    most: Most,
    progress: Callable[[Mapping[str, Any]], None],
    what: str,
    *,
    status: int,
) -> Any:
    loop, pace = asyncio.get_running_loop(), _Pace()
    due = loop.time()
    async for line in lines:
        if not line or line.startswith(_PROGRESS):
            if len(line) > _LINE.bytes:
                raise answers.too_long(_LINE.bytes, what)
            if line and loop.time() >= due:
                due = loop.time() + PROGRESS_SECONDS
                progress(_progress(line, what))
            await pace.line(len(line))
            continue
        found = answers.parse(line, most, what)
        if isinstance(found, dict) and found.get("problem") is not None:
            raise answers.problem(found["problem"], status, what)
        if isinstance(found, dict) and found.get(name) is not None:
            return found[name]
        raise MonitorAnswerError(f"{what}: a line has no progress, result or problem. Is it a Shai monitor?")
    raise MonitorUnreachableError(f"{what}: the monitor ended before it was done")


def _progress(line: bytes, what: str) -> Mapping[str, Any]:
    told: Mapping[str, Any] = shapes.checked(answers.parse(line, _LINE, what)["progress"], shapes.PROGRESS, what)
    return told


async def _lines(
    answer: aiohttp.ClientResponse, most: Most, what: str, room: answers.Room
) -> AsyncGenerator[bytes, None]:
    """Yield the lines; MonitorAnswerError when one has more bytes than it may."""
    held = bytearray()
    async for piece in answer.content.iter_any():
        *ends, rest = piece.split(b"\n")
        for end in ends:
            held += end
            if len(held) > most.bytes:
                raise answers.too_long(most.bytes, what)
            yield bytes(held.strip())
            held.clear()
        held += rest
        if len(held) > most.bytes:
            raise answers.too_long(most.bytes, what)
        await room.take(len(held))
    yield bytes(held.strip())


class _Pace:
    """Waits as long as the lines should have taken that were read."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time()

    async def line(self, size: int) -> None:
        now = self._loop.time()
        self._until = max(self._until, now) + max(1 / LINES_PER_SECOND, size / BYTES_PER_SECOND)
        if self._until - now > _AHEAD_SECONDS:
            await asyncio.sleep(self._until - now)
