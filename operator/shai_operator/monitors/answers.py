# SPDX-License-Identifier: BSD-2-Clause
"""Reads answers of monitors, within limits.

Of a member, the operator trusts only that it can answer for itself: what answers there may send without end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shai_operator.monitors import shapes
from shai_operator.monitors.errors import MonitorAnswerError, MonitorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import aiohttp


STATUS_BYTES, METRICS_BYTES, RESULT_BYTES, PROBLEM_BYTES = 4 << 20, 16 << 20, 16 << 20, 4 << 20
"""Bytes of the answers of each kind. As Python's objects, an answer can take twenty times as much."""
_QUOTED = 200
_REFUSALS = range(400, 600)
_ERRORS_TOLD = 3


async def read(answer: aiohttp.ClientResponse, most: int, what: str) -> bytes:
    """Read an answer to its end; MonitorAnswerError when it has more than ``most`` bytes.

    ``what`` begins the text of the error.
    """
    read = bytearray()
    async for piece in answer.content.iter_any():
        read += piece
        if len(read) > most:
            raise _too_long(most, what)
    return bytes(read)


async def lines(answer: aiohttp.ClientResponse, most: int, what: str) -> AsyncIterator[Mapping[str, Any]]:
    """Read an answer that is a stream of lines, JSON objects of at most ``most`` bytes; errors as of `read`."""
    held = bytearray()
    async for piece in answer.content.iter_any():
        *ends, rest = piece.split(b"\n")
        for end in ends:
            held += end
            if held.strip():
                yield _line(held, most, what)
            held.clear()
        held += rest
        if len(held) > most:
            raise _too_long(most, what)
    if held.strip():
        yield _line(held, most, what)


def parse(raw: bytes | bytearray, what: str) -> Any:
    """Return the JSON value of an answer; MonitorAnswerError when it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise MonitorAnswerError(f"{what}: {error}. Is it a Shai monitor of this version?") from error


async def refusal(answer: aiohttp.ClientResponse, what: str) -> MonitorError:
    """Return the error that an answer tells; MonitorAnswerError when it tells none."""
    raw = await read(answer, PROBLEM_BYTES, what)
    try:
        return problem(parse(raw, what), answer.status, what)
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


def _line(raw: bytearray, most: int, what: str) -> Mapping[str, Any]:
    if len(raw) > most:
        raise _too_long(most, what)
    found = parse(raw, what)
    if not isinstance(found, dict):
        raise MonitorAnswerError(f"{what}: a line is no object. Is it a Shai monitor of this version?")
    return found


def _too_long(most: int, what: str) -> MonitorAnswerError:
    return MonitorAnswerError(f"{what}: the answer is longer than {most >> 20} MiB")
