# SPDX-License-Identifier: BSD-2-Clause
"""Processes of a run that end unexpectedly, and descendants that the kernel makes our children.

Each supervisor has a process of its own here: it takes signals, and what the kernel makes a child of its process.
"""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.stacks import processes
from loadgen.stacks.supervisor import ProcessFailedError, Supervisor
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

ORPHAN = "(sh -c 'while [ ! -e end ]; do sleep 0.02; done' & echo $! >pid); exec sleep 600"


def state(pid: int) -> tuple[str, int]:
    """Return a process's state, as in /proc (Z for a zombie), and its parent; empty and 0 when it does not exist."""
    try:
        found, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return "", 0
    return found, int(parent)


def notice_the_end_of_a_process(logs: Path) -> None:
    with Supervisor() as supervisor:
        stays = supervisor.start("a server", ["sleep", "600"], logs / "stays.log")
        supervisor.check()
        fails = supervisor.start("an operator", ["sh", "-c", "echo no cluster; exit 3"], logs / "fails.log")
        fails.wait()
        with pytest.raises(ProcessFailedError, match=r"an operator ended with status 3:\n  \| no cluster"):
            supervisor.check()
        supervisor.end(fails)
        supervisor.check()
        assert stays.poll() is None


def reap_an_orphan(place: Path) -> None:
    file = place / "pid"
    with Supervisor() as supervisor:
        supervisor.start("a parent", ["sh", "-c", ORPHAN], place / "log", cwd=place)
        until(lambda: file.exists() and file.read_text().endswith("\n"), "the orphan runs")
        pid = int(file.read_text())
        until(lambda: state(pid)[1] == os.getpid(), "the orphan is a child of the supervisor's process")
        supervisor.check()
        assert state(pid)[0] not in {"", "Z"}
        (place / "end").touch()
        until(lambda: state(pid)[0] == "Z", "the orphan has ended")
        supervisor.check()
        assert state(pid) == ("", 0)


def spare_what_was_there(place: Path) -> None:
    with subprocess.Popen(["sh", "-c", "echo; sleep 600 & wait"], stdout=subprocess.PIPE, text=True) as before:
        assert before.stdout
        before.stdout.readline()
        until(lambda: len(processes.descendants(before.pid)) == 1, "the other process has a child")
        with Supervisor() as supervisor:
            own = supervisor.start("a server", ["sleep", "600"], place / "log")
        assert own.poll() is not None
        assert before.poll() is None
        assert len(processes.descendants(before.pid)) == 1
        for pid in (*processes.descendants(before.pid), before.pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("scene", [notice_the_end_of_a_process, reap_an_orphan, spare_what_was_there])
def test_what_happens_to_processes_is_noticed(tmp_path: Path, scene: Callable[[Path], None]) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        apart.submit(scene, tmp_path).result()
