# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's counts of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.stacks import counters
from loadgen.stacks.counters import Counters, CountersError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="counting system calls needs root")

CALLS = 1000
PROGRAM = f"""
import os, sys
print("begun", flush=True)
sys.stdin.readline()
if os.fork() == 0:
    for _ in range({CALLS}): os.getppid()
    os._exit(0)
os.wait()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running


def test_what_ended_children_did_is_counted(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()  # the calls with which an interpreter begins are not to be counted
    with Counters({"task": {process.pid}, "nobody": set()}) as counting:
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        found = counting.read()
    assert found.keys() == set(counters.KINDS)
    assert CALLS < found["syscalls"]["task"] < CALLS + 300
    assert found["faults"]["task"] > 10
    assert found["switches"]["task"] > 0
    assert {kind: found[kind]["nobody"] for kind in found} == dict.fromkeys(counters.KINDS, 0)
    print(file=process.stdin, flush=True)


def test_ended_processes_are_left_out_and_no_descriptor_remains() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        with Counters({"task": {ended.pid}}) as counting:
            assert counting.read()["syscalls"] == {"task": 0}
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_kernel_that_does_not_count_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_SYSTEM_CALL", {})
    with pytest.raises(CountersError, match="this needs root, x86-64 or arm64"), Counters({"task": {os.getpid()}}):
        pass
