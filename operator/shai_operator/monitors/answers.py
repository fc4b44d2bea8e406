# SPDX-License-Identifier: BSD-2-Clause
"""Reads answers of monitors, within limits.

Of a member, the operator trusts only that it can answer for itself: what answers there may send without end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from shai_operator.monitors import shapes
from shai_operator.monitors.errors import MonitorAnswerError, MonitorError

if TYPE_CHECKING:
    import asyncio

    import aiohttp


@dataclass(frozen=True)
class Most:
    """How much an answer may be. Both are looked at before it is parsed, which holds up all threads."""

    bytes: int
    values: int | None = 1 << 18
    """JSON values; None: this is not limited."""


STATUS = Most(4 << 20)
"""The state of a pipeline with all 64 tasks that it may have, and the 100 sessions that are listed, is 40 KiB and has
four thousand values."""
METRICS_BYTES = 16 << 20
ANALYSIS = Most(8 << 20, 1 << 19)
"""64 tasks that expect to read and write all 256 conduits of a pipeline are 32,768 accesses, each with ten values."""
COMPARISON = Most(2 << 20)
"""It lists at most 60 groups of flows, 20 users and 20 documents."""
RESULT = Most(4 << 20)
SEALED = Most(1 << 20)
CHECKS = Most(16 << 20, None)
"""Those of the operator's own parser, about whatever there is."""
PROBLEM = Most(4 << 20)
LARGE_AT_ONCE, SMALL_BYTES = 2, 1 << 16
"""How many answers of a member may have more bytes than this in memory at one time. Others are not read on: a member
may have a hundred connections, and hold its answers back for as long as a request may take."""

_QUOTED = 200
_REFUSALS = range(400, 600)
_ERRORS_TOLD = 3


class Room:
    """What one answer holds in memory: no more than `SMALL_BYTES`, unless it is one of the few that may."""

    def __init__(self, large: asyncio.Semaphore) -> None:
        """``large`` is the member's, with `LARGE_AT_ONCE` places."""
        self._large = large
        self._taken = False

    async def take(self, size: int) -> None:
        """Wait until ``size`` bytes may be held."""
        if size > SMALL_BYTES and not self._taken:
            await self._large.acquire()
            self._taken = True

    async def __aenter__(self) -> Self:
        """Return the room itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the room back."""
        if self._taken:
            self._large.release()


async def read(answer: aiohttp.ClientResponse, most: int, what: str, large: asyncio.Semaphore) -> bytes:
    """Read an answer to its end; MonitorAnswerError when it has more than ``most`` bytes.

    ``what`` begins the text of the error; ``large`` is as of `Room`.
    """
    read = bytearray()
    async with Room(large) as room:
        async for piece in answer.content.iter_any():
            read += piece
            if len(read) > most:
                raise too_long(most, what)
            await room.take(len(read))
        return bytes(read)


def parse(raw: bytes | bytearray, most: Most, what: str) -> Any:
    """Return the JSON value of an answer; MonitorAnswerError when it is none, or has too many values in it."""
    if most.values is not None and _values(raw) > most.values:
        raise MonitorAnswerError(f"{what}: the answer has more than {most.values} values")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise MonitorAnswerError(f"{what}: {error}. Is it a Shai monitor of this version?") from error


async def refusal(answer: aiohttp.ClientResponse, what: str, large: asyncio.Semaphore) -> MonitorError:
    """Return the error that an answer tells; MonitorAnswerError when it tells none."""
    raw = await read(answer, PROBLEM.bytes, what, large)
    try:
        return problem(parse(raw, PROBLEM, what), answer.status, what)
    except MonitorAnswerError:
        text = raw[:_QUOTED].decode(errors="replace")
        return MonitorAnswerError(f"{what}: unexpected answer {answer.status}: {text}")


def problem(found: Any, status: int, what: str) -> MonitorError:
    """Return a problem as an error; MonitorAnswerError when it is not of this shape, or has no title."""
    told = shapes.checked(found, shapes.PROBLEM, what)
    if not told["title"]:
        raise MonitorAnswerError(f"{what}: the problem has no title")
    parts = [f"{told['title']}: {told['detail']}".strip(": ")]
    if told["remedy"]:
        parts.append(told["remedy"])
    return MonitorError(
        "; ".join([*parts, *told["errors"][:_ERRORS_TOLD]]),
        told["status"] if told["status"] in _REFUSALS else status,
        told["errors"],
    )


def too_long(most: int, what: str) -> MonitorAnswerError:
    """Return the error of an answer, or a line of one, that has more than ``most`` bytes."""
    return MonitorAnswerError(f"{what}: the answer is longer than {most >> 10} KiB")


def _values(raw: bytes | bytearray) -> int:
    """Return how many values a JSON text has at most: each but the first one follows one of these characters."""
    return len(raw) - len(raw.translate(None, b",[{")) + 1
