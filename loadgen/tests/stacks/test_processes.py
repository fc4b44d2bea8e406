# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time of real processes, in the shapes that tasks have beneath a monitor."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK = """
def work(seconds):
    while time.process_time() < seconds: pass
"""
SUPERVISOR = f"""
import os, sys, time
{WORK}
work(0.2)
worked, tell = os.pipe()
task = os.fork()
if task == 0:
    work(0.1)
    os.write(tell, b".")
    sys.stdin.read()
    os._exit(0)
if os.fork() == 0:  # a worker, whose parent is the supervisor and not the task
    work(0.3)
    os._exit(0)
os.wait()
os.read(worked, 1)
print(task, flush=True)
os.wait()
"""
TASK = f"""
import os, sys, time
{WORK}
if os.fork() == 0:
    work(0.3)
    os._exit(0)
os.wait()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run a program that prints the process id of a task beneath it."""
    with subprocess.Popen(
        [sys.executable, "-c", request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@pytest.mark.parametrize("task", [SUPERVISOR], indirect=True)
def test_workers_of_a_supervisor_count_for_the_task(task: int) -> None:
    serving, supervising = processes.task_nanoseconds(task, [os.getpid()])
    assert serving > 0.35e9
    assert supervising > 0.2e9
    assert serving + supervising == pytest.approx(processes.tree_nanoseconds(processes.ancestors(task)[0]), rel=0.2)


@pytest.mark.parametrize("task", [TASK], indirect=True)
def test_a_task_without_a_supervisor_counts_alone(task: int) -> None:
    serving, supervising = processes.task_nanoseconds(task, [os.getpid()])
    assert serving > 0.25e9
    assert supervising == 0


@pytest.mark.parametrize("task", [SUPERVISOR], indirect=True)
def test_a_task_of_an_unknown_monitor_counts_alone(task: int) -> None:
    assert processes.task_nanoseconds(task, [])[1] == 0


def test_the_line_of_ancestors_ends_at_the_first_process() -> None:
    assert processes.ancestors(os.getpid())[0] == os.getppid()
    assert processes.ancestors(os.getpid())[-1] == 1
