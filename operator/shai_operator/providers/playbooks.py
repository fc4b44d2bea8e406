# SPDX-License-Identifier: BSD-2-Clause
"""Runs of playbooks: one at a time on a host, a fixed number in all, each in its own thread.

Each run has a fresh private directory, an environment of its own and a time limit. Its processes end when it is
cancelled, when its time is over, and when the operator ends.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.providers import directories, process
from shai_operator.providers.events import Record
from shai_operator.providers.interface import Failure, Reason
from shai_operator.providers.inventory import MACHINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from shai_operator.providers.interface import Host, Progress

WORKERS = 4
TIME_LIMIT_SECONDS = 900.0


@dataclass(frozen=True)
class Job:
    """A playbook to run on a host."""

    playbook: str
    """Name of a playbook in the collection, such as ``provision.yml``."""
    host: Host
    inventory: Callable[[Path], str]
    """Returns the inventory for a run's directory."""
    files: Mapping[str, str] = field(repr=False)
    """Files for the run's directory, by name; secrets belong here."""
    guests: Mapping[str, str] = field(default_factory=dict)
    """The virtual machines on the host that the run reaches, by the inventory's entry."""
    time_limit_seconds: float | None = None
    """How long it may take; None: as long as others."""
    looks: bool = False
    """Whether it changes nothing. Such runs have half of the threads at most: hosts that hang are looked at again and
    again, and must not keep the others from being worked on."""


@dataclass(frozen=True)
class Report:
    """The result of a run. ``failure`` concerns the whole run, for members that have no failure of their own."""

    record: Record
    failure: Failure | None = None


class Playbooks:
    """Runs playbooks for one event loop."""

    def __init__(
        self,
        *,
        workers: int = WORKERS,
        time_limit_seconds: float = TIME_LIMIT_SECONDS,
        directory: Path | None = None,
    ) -> None:
        self._time_limit = time_limit_seconds
        self._base = directories.base_directory(directory)
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="playbook")
        self._totals: dict[str, int] = {}
        self._busy: dict[str, Job] = {}
        """The running jobs, by address: two pools may name the same machine differently."""
        self._moved = asyncio.Event()
        self._runs: dict[asyncio.Task[Report], threading.Event] = {}

    async def run(self, job: Job, progress: Callable[[Progress], None], cancel: asyncio.Event) -> Report:
        """Run a job when its turn comes. A cancelled call returns when the run's processes have ended."""
        stop = threading.Event()
        run = asyncio.create_task(self._run_in_turn(job, progress, stop))
        self._runs[run] = stop
        run.add_done_callback(self._runs.pop)
        watch = asyncio.create_task(self._stop_when(cancel, stop))
        try:
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            self._stop(stop)
            await asyncio.wait({run})
            raise
        finally:
            watch.cancel()

    async def close(self) -> None:
        """Stop all runs, and wait until they have ended."""
        for stop in self._runs.values():
            self._stop(stop)
        if self._runs:
            await asyncio.wait(set(self._runs))
        self._threads.shutdown()

    def _stop(self, stop: threading.Event) -> None:
        stop.set()
        self._announce()

    async def _stop_when(self, cancel: asyncio.Event, stop: threading.Event) -> None:
        await cancel.wait()
        self._stop(stop)

    def _announce(self) -> None:
        """Wake the waiting runs."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def _run_in_turn(self, job: Job, progress: Callable[[Progress], None], stop: threading.Event) -> Report:
        while not stop.is_set() and not self._has_room(job):
            await self._moved.wait()
        if stop.is_set():
            return Report(Record(job.host, 0, job.guests), _cancelled(job))
        self._busy[job.host.address] = job
        try:
            loop = asyncio.get_running_loop()

            def report(reached: Progress) -> None:
                loop.call_soon_threadsafe(progress, reached)

            return await loop.run_in_executor(self._threads, self._run, job, report, stop)
        finally:
            del self._busy[job.host.address]
            self._announce()

    def _has_room(self, job: Job) -> bool:
        looking = sum(running.looks for running in self._busy.values())
        return (
            job.host.address not in self._busy
            and len(self._busy) < self._workers
            and not (job.looks and looking >= max(self._workers // 2, 1))
        )

    def _run(self, job: Job, report: Callable[[Progress], None], stop: threading.Event) -> Report:
        """Run a job in this thread, from creating its directory to removing it."""
        with directories.run_directory(self._base) as directory:
            playbook = process.prepare(directory, job.playbook)
            for name, text in {**job.files, "inventory.json": job.inventory(directory)}.items():
                directories.write_private(directory / name, text)
            if job.playbook not in self._totals:
                self._totals[job.playbook] = process.count_tasks(directory, playbook)
            record = Record(job.host, self._totals[job.playbook], job.guests)

            def observe(event: Mapping[str, object]) -> None:
                moved = record.observe(event)
                if moved is not None:
                    report(moved)

            end = process.run(directory, playbook, observe, stop, self._limit(job))
        return Report(record, self._judged(job, record, end))

    def _limit(self, job: Job) -> float:
        return self._time_limit if job.time_limit_seconds is None else job.time_limit_seconds

    def _judged(self, job: Job, record: Record, end: process.End) -> Failure | None:
        match end:
            case process.End.CANCELLED:
                return _cancelled(job)
            case process.End.TIMED_OUT:
                return Failure(
                    Reason.TIMED_OUT,
                    f"host {job.host.name}: {job.playbook} took longer than {self._limit(job):.0f} s and was ended "
                    f"in task {record.task!r}: look at the host's load and network; the next run goes on from there",
                )
            # Ansible reports success when it had nothing to do.
            case process.End.SUCCEEDED if record.reached:
                return None
        if MACHINE in record.failures:
            return record.failures[MACHINE]
        return None if record.failures else record.explain()


def _cancelled(job: Job) -> Failure:
    return Failure(
        Reason.CANCELLED, f"host {job.host.name}: {job.playbook} was cancelled; the next run goes on from there"
    )
