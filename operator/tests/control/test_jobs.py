# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import asyncio

from shai_operator.control.jobs import Job, Jobs


async def test_one_job_of_a_key_at_a_time() -> None:
    gate = asyncio.Event()

    async def work(_: Job) -> str:
        await gate.wait()
        return "first"

    async def other(_: Job) -> str:
        return "second"

    ended: list[str] = []
    jobs = Jobs()
    job = jobs.start("pool/a", work, lambda: ended.append("work"))
    assert jobs.start("pool/a", other) is job
    gate.set()
    while jobs.running("pool/a"):
        await asyncio.sleep(0)
    assert (job.done, job.result, job.error) == (True, "first", None)
    assert ended == ["work"]
    assert jobs.start("pool/a", other) is not job
    await jobs.close()


async def test_a_failure_is_kept_for_who_started_it() -> None:
    async def work(_: Job) -> None:
        raise ValueError("no such host")

    jobs = Jobs()
    job = jobs.start("a", work)
    while jobs.running("a"):
        await asyncio.sleep(0)
    assert str(job.error) == "no such host"
    jobs.forget("a")
    assert jobs.get("a") is None


async def test_closing_cancels_and_waits() -> None:
    ended = asyncio.Event()

    async def work(_: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    jobs = Jobs()
    job = jobs.start("a", work)
    await asyncio.sleep(0)
    await jobs.close()
    assert ended.is_set()
    assert job.done
