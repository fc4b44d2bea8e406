# SPDX-License-Identifier: BSD-2-Clause
"""What processes have used, from /proc."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(marker: str, parent: int = 0) -> float:
    """Add up the CPU time of the processes with ``marker`` in their arguments, of ``parent`` or (0) of anybody."""
    every = [process for process in Path("/proc").iterdir() if process.name.isdecimal() and _is(process, marker)]
    found = [_stat(process) for process in every]
    return sum(seconds for above, seconds in found if parent in (0, above))


def children_seconds() -> float:
    """Return the CPU time of this process' children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def _is(process: Path, marker: str) -> bool:
    try:
        return marker.encode() in (process / "cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return False  # it has ended


def _stat(process: Path) -> tuple[int, float]:
    """Return a process' parent and its CPU time."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS  # utime and stime
