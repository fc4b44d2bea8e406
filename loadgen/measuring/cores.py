# SPDX-License-Identifier: BSD-2-Clause
"""Keeps the load generator and what it loads on different cores."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.driving.orders import Crew, Driver
from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.driving.discovery import Discovery
    from loadgen.stacks.stack import Stack
    from loadgen.stacks.supervisor import Supervisor

_ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def crew(
    data: Path, logs: Path, supervisor: Supervisor, workers: int = 1, discovery: Discovery | None = None
) -> Iterator[Crew]:
    """Start the processes of the load generator on their cores, for the people of a data directory."""
    words = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
    words += discovery.words if discovery else []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": _ROOT}
    names = [f"load generator {number}" if workers > 1 else "load generator" for number in range(workers)]
    started = [supervisor.start(name, words, logs / f"driver-{at}.log", **pipes) for at, name in enumerate(names)]
    with contextlib.ExitStack() as drivers:
        ready = [
            drivers.enter_context(Driver(process.stdin, process.stdout, name))
            for name, process in zip(names, started, strict=True)
        ]
        processes.pin([process.pid for process in started], processes.split_cores(workers)[1])
        yield Crew(ready)


@contextlib.contextmanager
def pinned(stacks: Sequence[Stack], supervisor: Supervisor, workers: int = 1) -> Iterator[None]:
    """Keep stacks off the load generator's cores; at the end, let them use all cores again."""
    pids = {pid for stack in stacks for pid in stack.processes()}
    if not pids:
        yield  # they are on another host
        return
    before = processes.affinities(pids)
    processes.pin(pids, processes.split_cores(workers)[0])
    try:
        yield
    finally:
        with supervisor.undisturbed():
            # Workers that were forked meanwhile have inherited the restriction from their tasks.
            usual = next(iter(before.values()))
            now = {pid for stack in stacks for pid in stack.processes()}
            for pid in now | pids:
                processes.pin([pid], before.get(pid, usual))
