# SPDX-License-Identifier: BSD-2-Clause
"""Keeps the load generator and what it loads on different cores."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.driving.orders import Driver
from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.stacks.stack import Stack
    from loadgen.stacks.supervisor import Supervisor

_ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def driver(data: Path, logs: Path, supervisor: Supervisor) -> Iterator[Driver]:
    """Start the load generator on its core, for the people of a data directory."""
    words = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": _ROOT}
    process = supervisor.start("load generator", words, logs / "driver.log", **pipes)
    with Driver(process) as started:
        processes.pin([process.pid], processes.split_cores()[1])
        yield started


@contextlib.contextmanager
def pinned(stacks: Sequence[Stack], supervisor: Supervisor) -> Iterator[None]:
    """Keep stacks off the load generator's core; at the end, let them use all cores again."""
    pids = {pid for stack in stacks for pid in stack.processes()}
    before = processes.affinities(pids)
    processes.pin(pids, processes.split_cores()[0])
    try:
        yield
    finally:
        with supervisor.undisturbed():
            # Workers that were forked meanwhile have inherited the restriction from their tasks.
            usual = next(iter(before.values()))
            now = {pid for stack in stacks for pid in stack.processes()}
            for pid in now | pids:
                processes.pin([pid], before.get(pid, usual))
