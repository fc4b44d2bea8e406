# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: work that takes longer than a reconciliation, such as playbooks, analyses and swaps of bundles.

A job has a key, and only one job of a key runs at a time. Its result is kept until the next job of that key. Nothing is
kept across a restart of the operator, which observes the members instead.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")


class CancelledError(Exception):
    """A job was ended on request."""


@dataclass
class Job:
    """One job."""

    progress: Any = None
    waiting: str = ""
    """For what it waits before it begins, for people; empty: for nothing."""
    result: Any = None
    error: Exception | None = None
    done: bool = False
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    """If set, the job ends itself in good order."""
    ended: Callable[[], None] | None = None
    """Called when the job is done."""

    async def unless_cancelled(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await ``work``, a part of this job; if the job is cancelled first, end it and raise CancelledError."""
        request = asyncio.create_task(work)
        cancelled = asyncio.create_task(self.cancel.wait())
        try:
            await asyncio.wait([request, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                raise CancelledError("cancelled")
            return request.result()
        finally:
            request.cancel()
            cancelled.cancel()
            await asyncio.gather(request, cancelled, return_exceptions=True)


class Jobs:
    """Runs jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def get(self, key: str) -> Job | None:
        """Return the job of this key that runs or ran last."""
        return self._jobs.get(key)

    def running(self, key: str) -> bool:
        """Whether a job of this key runs."""
        return key in self._tasks

    def start(self, key: str, work: Callable[[Job], Awaitable[Any]], ended: Callable[[], None] | None = None) -> Job:
        """Start a job, or return the job of this key that already runs. ``ended`` is called when the job is done."""
        if key in self._tasks:
            return self._jobs[key]
        job = self._jobs[key] = Job(ended=ended)
        self._tasks[key] = asyncio.create_task(self._run(key, job, work), name=key)
        return job

    def forget(self, key: str) -> None:
        """Forget the result of a job; a running one continues."""
        if key not in self._tasks:
            self._jobs.pop(key, None)

    async def close(self) -> None:
        """Cancel all running jobs, and wait for them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, key: str, job: Job, work: Callable[[Job], Awaitable[Any]]) -> None:
        try:
            job.result = await work(job)
        except Exception as error:  # noqa: BLE001 - whoever started the job decides what to do about it
            job.error = error
            _LOGGER.info("%s: %s", key, error)
        finally:
            job.done = True
            self._tasks.pop(key, None)
            if job.ended is not None:
                job.ended()
