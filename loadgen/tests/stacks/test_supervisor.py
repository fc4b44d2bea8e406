# SPDX-License-Identifier: BSD-2-Clause
"""Processes of a run that end unexpectedly, and descendants that the kernel makes our children."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.stacks.supervisor import ProcessFailedError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

ORPHAN = "(sh -c 'while [ ! -e end ]; do sleep 0.02; done' & echo $! >pid); exec sleep 600"


def await_condition(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def state(pid: int) -> str:
    """Return a process's state, as in /proc: Z for a zombie, empty when it does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_a_process_that_ends_by_itself_is_noticed_with_its_log(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        stays = supervisor.start("a server", ["sleep", "600"], tmp_path / "stays.log")
        supervisor.check()
        fails = supervisor.start("an operator", ["sh", "-c", "echo no cluster; exit 3"], tmp_path / "fails.log")
        fails.wait()
        with pytest.raises(ProcessFailedError, match=r"an operator ended with status 3:\n  \| no cluster"):
            supervisor.check()
        supervisor.end(fails)
        supervisor.check()
        assert stays.poll() is None


def test_an_orphan_that_has_ended_is_gone_for_those_who_wait_for_it(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        supervisor.start("a parent", ["sh", "-c", ORPHAN], tmp_path / "log", cwd=tmp_path)
        await_condition(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        pid = int((tmp_path / "pid").read_text())
        supervisor.check()
        assert state(pid) not in {"", "Z"}
        (tmp_path / "end").touch()
        await_condition(lambda: state(pid) == "Z")
        supervisor.check()
        assert state(pid) == ""
