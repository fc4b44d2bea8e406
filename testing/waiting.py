# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for a condition on a busy machine."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS = 0.1
_LOOP_POLL_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5
_PAUSES = 20
"""A pause is so many times shorter than what has been waited already: each look takes time from what is waited for."""
LONGEST_SECONDS = 900.0
"""The most by which a limit is extended: a condition that never holds is a failure on a busy machine, too."""

_PRESSURE = Path("/proc/pressure/cpu")


class Limit:
    """A time limit that a busy machine prolongs.

    Only the part of each second counts in which every runnable process had a processor. The kernel reports the rest
    (pressure stall information, /proc/pressure). Without this report, each second counts completely. ``longest`` is the
    most by which the limit is prolonged, in seconds.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        stalled: Callable[[], float] | None = None,
        longest: float = LONGEST_SECONDS,
    ) -> None:
        self._longest = longest
        self._seconds, self._clock, self._stalled = seconds, clock, stalled or stalled_seconds
        self._began, self._stalled_before = self._clock(), self._stalled()

    def reached(self) -> bool:
        """Whether the time is over."""
        passed = self._clock() - self._began
        return passed - min(self._stalled() - self._stalled_before, self._longest) > self._seconds

    def pause(self, shortest: float) -> float:
        """Return how long to wait, in seconds, before the condition is looked at again: the longer, the later it is."""
        return max(shortest, min((self._clock() - self._began) / _PAUSES, _LONGEST_PAUSE_SECONDS))

    def __str__(self) -> str:
        """Return how long it was, and how much time it counted."""
        return f"{self._seconds:.0f} s with a free processor, {self._clock() - self._began:.0f} s in all"


def stalled_seconds() -> float:
    """Return for how long, since the machine was started, some process has waited for a processor."""
    with suppress(OSError):
        for line in _PRESSURE.read_text().splitlines():
            if line.startswith("some "):
                return int(line.rpartition("total=")[2]) / 1e6
    return 0.0


def until(condition: Any, what: str, seconds: float = 30.0, longest: float = LONGEST_SECONDS) -> Any:
    """Wait until ``condition()`` is true and return its value; AssertionError with ``what`` when it stays false.

    ``longest`` is the most by which a busy machine extends the limit: less where several tests would wait in vain one
    after the other.
    """
    limit = Limit(seconds, longest=longest)
    while not (found := condition()):
        if limit.reached():
            raise AssertionError(f"not within {limit}: {what}")
        time.sleep(limit.pause(POLL_SECONDS))
    return found


async def until_async(condition: Callable[[], Any], what: str = "the condition holds", seconds: float = 60.0) -> None:
    """Wait until ``condition()`` is true, as `until`, while the event loop goes on."""
    limit = Limit(seconds)
    while not condition():
        if limit.reached():
            raise AssertionError(f"not within {limit}: {what}")
        await asyncio.sleep(_LOOP_POLL_SECONDS)
