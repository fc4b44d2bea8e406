# SPDX-License-Identifier: BSD-2-Clause
"""Processes of the system under test: their CPU time, their descendants, their cores.

The CPU time of a live process comes from its CPU clock (nanoseconds, all threads). Workers start and end within a
slice, so the time of ended children counts, too. The kernel reports it in clock ticks (10 ms), truncated from an exact
sum, so that the error does not grow with the number of workers.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet

_TICK_NANOSECONDS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2  # include/linux/posix-timers.h: scheduler time of a whole process
_PPID, _CUTIME, _CSTIME = 1, 13, 14  # fields of /proc/PID/stat, counted from the end of the command name


class ProcessGoneError(LoadgenError):
    """A process of the system under test has ended unexpectedly."""


def cpu_nanoseconds(pid: int) -> int:
    """Return the CPU time (user and system) of one live process; ProcessGoneError when it has ended."""
    try:
        return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)
    except OSError as error:
        raise ProcessGoneError(f"process {pid} has ended; its log says why") from error


def ended_children_nanoseconds(pid: int) -> int:
    """Return the CPU time of the children of ``pid`` that have ended and been waited for."""
    fields = _stat_fields(pid)
    return (int(fields[_CUTIME]) + int(fields[_CSTIME])) * _TICK_NANOSECONDS


def tree_nanoseconds(pid: int) -> int:
    """Return the CPU time of ``pid`` and all its descendants, but not of ended ones whose parent ignores SIGCHLD.

    A child that ends during this call is counted once. Between its end and its parent's wait it is a zombie, whose
    clock still runs; it may then be counted twice for this time only.
    """
    total = cpu_nanoseconds(pid) + ended_children_nanoseconds(pid)
    for child in children(pid):
        with contextlib.suppress(ProcessGoneError):  # it has just ended, and will be in the sum next time
            total += tree_nanoseconds(child)
    return total


def supervisor_of(pid: int, services: Collection[int]) -> int | None:
    """Return the process that supervises a task: the child of its monitor, one of ``services``, above the task."""
    line = [pid, *ancestors(pid)]
    found = next((below for below, above in itertools.pairwise(line) if above in services), pid)
    return None if found == pid else found


def task_nanoseconds(pid: int, services: Collection[int]) -> tuple[int, int]:
    """Return the CPU time of a task with its workers, and of the process that supervises it, 0 where there is none.

    The workers, ended ones too, are children of the task's first process or of its supervisor.
    """
    supervisor = supervisor_of(pid, services)
    if supervisor is None:
        return tree_nanoseconds(pid), 0
    task = ended_children_nanoseconds(supervisor)
    for child in children(supervisor):
        with contextlib.suppress(ProcessGoneError):  # as in tree_nanoseconds
            task += tree_nanoseconds(child)
    return task, cpu_nanoseconds(supervisor)


def ancestors(pid: int) -> list[int]:
    """Return the process ids of a live process's parent, the parent's parent, and so on."""
    found: list[int] = []
    while (pid := int(_stat_fields(pid)[_PPID])) != 0:
        found.append(pid)
    return found


def children(pid: int) -> list[int]:
    """Return the live children of ``pid``; none when it has ended."""
    found: list[int] = []
    for path in _listdir(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            found += map(int, (path / "children").read_text().split())
    return found


def descendants(pid: int) -> set[int]:
    """Return all live descendants of ``pid``."""
    found: set[int] = set()
    open_ends = [pid]
    while open_ends:
        for child in children(open_ends.pop()):
            if child not in found:
                found.add(child)
                open_ends.append(child)
    return found


def pin(pids: Iterable[int], cores: AbstractSet[int]) -> None:
    """Bind every thread of the processes to ``cores``; new threads inherit this."""
    for pid in pids:
        for thread in _listdir(Path(f"/proc/{pid}/task")):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def affinities(pids: Iterable[int]) -> dict[int, set[int]]:
    """Return the cores on which each process may run; ended processes are left out."""
    found = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found[pid] = os.sched_getaffinity(pid)
    return found


def split_cores(workers: int = 1) -> tuple[set[int], set[int]]:
    """Return the cores of the system under test, and the load generator's; equal on a machine with one core.

    The load generator has one for each of its processes, and at most half of them.
    """
    available = sorted(os.sched_getaffinity(0))
    taken = max(1, min(workers, len(available) // 2))
    return set(available[:-taken]) or set(available), set(available[-taken:])


def _stat_fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError as error:
        raise ProcessGoneError(f"process {pid} has ended; its log says why") from error
    return text.rpartition(")")[2].split()


def _listdir(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:
        return []
