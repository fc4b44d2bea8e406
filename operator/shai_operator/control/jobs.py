# SPDX-License-Identifier: BSD-2-Clause
"""Work that takes longer than a reconciliation: playbooks, analyses, bundles on their way.

A job is known by a key, and there is one of a key at a time. What it came to is kept until the
next job of that key; nothing is kept across a restart of the operator, which looks at the members
instead.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LOGGER = logging.getLogger(__name__)


@dataclass
class Job:
    """One piece of work."""

    progress: Any = None
    result: Any = None
    error: Exception | None = None
    done: bool = False
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it to have the work end itself in good order."""
    ended: Callable[[], None] | None = None
    """Called when it is done."""


class Jobs:
    """Runs jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def get(self, key: str) -> Job | None:
        """Return the job of this key that runs or was the last to run."""
        return self._jobs.get(key)

    def running(self, key: str) -> bool:
        """Whether a job of this key runs."""
        return key in self._tasks

    def start(self, key: str, work: Callable[[Job], Awaitable[Any]], ended: Callable[[], None] | None = None) -> Job:
        """Start a job, unless one of this key runs, which is then returned. ``ended`` is called after it."""
        if key in self._tasks:
            return self._jobs[key]
        job = self._jobs[key] = Job(ended=ended)
        self._tasks[key] = asyncio.create_task(self._run(key, job, work), name=key)
        return job

    def forget(self, key: str) -> None:
        """Drop what a job came to; one that runs goes on."""
        if key not in self._tasks:
            self._jobs.pop(key, None)

    async def close(self) -> None:
        """Cancel what runs, and wait for it."""
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
