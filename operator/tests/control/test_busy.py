# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import asyncio

import pytest

from shai_operator.control.busy import Busy


class Clock:
    """Time passes only when the work says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("shai_operator.control.busy.time.perf_counter", lambda: self.now)


async def test_only_the_time_counts_in_which_the_loop_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, others = Clock(monkeypatch), asyncio.Event()

    async def other() -> None:
        clock.now += 100
        others.set()

    async def work() -> str:
        clock.now += 1
        task = asyncio.create_task(other())
        await others.wait()
        clock.now += 2
        await task
        return "done"

    measured = Busy(work())
    assert await measured == "done"
    assert measured.seconds == 3


async def test_a_failure_and_its_time_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def work() -> None:
        await asyncio.sleep(0)
        clock.now += 1
        raise LookupError("lost")

    measured = Busy(work())
    with pytest.raises(LookupError, match="lost"):
        await measured
    assert measured.seconds == 1


async def test_a_cancellation_reaches_the_work() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # what it does at its end may wait, too
            ended.append("in good order")
            raise

    async def run() -> None:
        await Busy(work())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["in good order"]
