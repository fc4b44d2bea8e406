# SPDX-License-Identifier: BSD-2-Clause
"""The demo's harness from end to end, with stand-ins for the monitor, Sys-E and Java.

Redis, the load generator and every signal are real.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FAKE = f'exec "{sys.executable}" -m loadgen.tests.fake_shai'
DEMO = """
import dataclasses, sys
from pathlib import Path
from loadgen import demo, plan, supervisor
tiny = {"slice_seconds": 0.2, "warm_up_seconds": 0.4, "concurrent_users": 4}
plan.PLANS["smoke"] = dataclasses.replace(plan.PLANS["smoke"], **tiny)
supervisor.GRACE_SECONDS = 3.0
sys.exit(demo.main(sys.argv[2:], Path(sys.argv[1])))
"""
MARK = "SHAI_DEMO_TEST"
"""Environment variable by which a test finds every process of its demo."""


class Run:
    """A demo in a checkout of its own."""

    def __init__(self, root: Path, port: int) -> None:
        self.root = root
        self.port = port
        self.environment = {
            **os.environ,
            "PATH": f"{root}/path:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            MARK: str(root),
        }

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", DEMO, str(self.root), "--size", "smoke", "--port", str(self.port), *arguments],
            cwd=ROOT,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def left_over(self) -> list[str]:
        """Command lines of processes that this demo started and that still live."""
        mark = f"{MARK}={self.root}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it has ended, or is not ours
        return found


def script(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def free_ports() -> int:
    """Find the first of four free ports below those that the kernel gives to clients."""
    source = random.Random()
    while True:
        port = source.randrange(15000, 30000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for number in range(port, port + 4):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            return port


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    script(tmp_path / "build" / "bin" / "shai", f'{FAKE} shai "$@"')
    script(tmp_path / "path" / "java", f'{FAKE} java "$@"')
    for name in ("syse.jar", "syse-frontend"):
        script(tmp_path / "build" / "syse" / name, "exit 1")
    shutil.copytree(ROOT / "crds" / "examples" / "syse", tmp_path / "crds" / "examples" / "syse")
    made = Run(tmp_path, free_ports())
    yield made
    assert made.left_over() == []


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Read the demo's output up to a line with ``text``."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"the demo ended without {text!r}:\n{seen}")


def test_runs_through_and_writes_what_it_promises(run: Run) -> None:
    process = run.start()
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output
    for number in range(1, 9):
        assert f"[{number}/8]" in output
    assert "queries per session" in output
    assert "baseline: bob's document LEAKED" in output
    assert "refused: not bob" in output
    out = run.root / "out" / "demo"
    found = json.loads((out / "results.json").read_text())
    assert found["enforcement"]["leak"]["baseline"]["leaked"] is True
    assert found["enforcement"]["leak"]["shai"]["leaked"] is False
    assert found["enforcement"]["leak"]["audit"]["reason"] == "not bob"
    assert found["machine"]["cores"] >= 1
    assert len(samples.read(out / "samples.csv")) == 12
    assert not list(out.glob("run-*")), "the socket directory goes with the run"

    again, _ = (second := run.start()).communicate(timeout=90)
    assert second.returncode == 0, again
    assert "kept from the last run" in again


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("[2/8]", signal.SIGINT),
        ("[3/8]", signal.SIGINT),
        ("[4/8]", signal.SIGTERM),
        ("[6/8]", signal.SIGINT),
        ("[6/8]", signal.SIGHUP),
        ("[8/8]", signal.SIGINT),
    ],
)
def test_a_signal_leaves_no_process_behind(run: Run, point: str, number: signal.Signals) -> None:
    process = run.start()
    wait_for(process, point)
    time.sleep(0.4)  # into the step
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert run.left_over() == []


def test_a_monitor_that_ignores_sigterm_is_killed_with_its_tasks(run: Run) -> None:
    process = run.start("--keep", FAKE_STUBBORN="1")
    wait_for(process, "[6/8] search: 12 slices, about 0 min, seed 1 …")
    time.sleep(1)
    assert len(run.left_over()) > 3
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert "monitor (confined) did not end" in output
    assert run.left_over() == []


def test_killed_itself_the_kernel_ends_its_processes(run: Run) -> None:
    process = run.start()
    wait_for(process, "[4/8]")
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while run.left_over() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run.left_over() == []


def test_keep_prints_what_to_try_and_waits(run: Run) -> None:
    process = run.start("--keep")
    output = wait_for(process, "unfriend:")
    assert f"http://127.0.0.1:{run.port}" in output
    assert "search “bob's diary”" in output
    with socket.create_connection(("127.0.0.1", run.port)):
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_an_occupied_port_is_named_with_the_remedy(run: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", run.port))
        other.listen()
        output, _ = (process := run.start()).communicate(timeout=30)
    assert process.returncode == 1
    assert f"127.0.0.1:{run.port}: Address already in use" in output
    assert "make demo PORT=" in output


def test_what_is_not_built_is_named_with_the_remedy(run: Run) -> None:
    (run.root / "build" / "bin" / "shai").unlink()
    output, _ = (process := run.start()).communicate(timeout=30)
    assert process.returncode == 1
    assert "bin/shai is missing: run `make build`" in output


def test_a_failing_program_shows_the_end_of_its_log(run: Run) -> None:
    script(run.root / "path" / "java", "echo no space left on device; exit 3")
    output, _ = (process := run.start()).communicate(timeout=30)
    assert process.returncode == 1
    assert "corpus generator ended with status 3" in output
    assert "| no space left on device" in output


def test_a_second_demo_is_kept_out(run: Run) -> None:
    first = run.start()
    wait_for(first, "[3/8]")
    output, _ = (second := run.start()).communicate(timeout=30)
    assert second.returncode == 1
    assert "another demo is running" in output
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)


def test_the_harness_is_not_patched() -> None:
    """Locust patches the whole process when it is imported: signals and children would go through gevent."""
    code = "import loadgen.demo, sys, gevent.monkey; sys.exit(gevent.monkey.is_module_patched('subprocess'))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
