# SPDX-License-Identifier: BSD-2-Clause
"""The output of the build: scripts/step.sh, and scripts/suites.sh, which runs suites with it."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from testing.waiting import until

SCRIPTS = Path(__file__).resolve().parents[1]
NOISE = "echo out; echo err >&2; "


def run(script: str, *arguments: str, verbose: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / script), *arguments]
    environment = {**os.environ, "V": verbose, "TERM": "xterm"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def printed(master: int) -> bytes:
    """Read from a terminal what was printed next; nothing when every process has closed it."""
    try:
        return os.read(master, 4096)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def test_a_step_that_succeeds_is_one_line() -> None:
    done = run("step.sh", "library", "bash", "-c", NOISE)
    assert done.returncode == 0
    assert re.fullmatch(r"library +\d+\.\d s\n", done.stdout)
    assert done.stderr == ""


def test_a_step_that_fails_shows_its_command_and_what_it_printed() -> None:
    done = run("step.sh", "library", "bash", "-c", NOISE + "exit 3")
    assert done.returncode == 3
    assert done.stdout == ""
    first, *printed = done.stderr.splitlines()
    assert re.fullmatch(r"library +\d+\.\d s  FAILED \(status 3\): bash -c '.*exit 3'", first)
    assert printed == ["out", "err"]


def test_v_shows_command_and_output_of_every_step() -> None:
    done = run("step.sh", "library", "echo", "two words", verbose="1")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["=== library: echo 'two words'", "two words"]


def test_output_is_let_through_where_that_is_asked_for() -> None:
    done = run("step.sh", "--show", "tests", "bash", "-c", NOISE + "exit 4")
    assert done.returncode == 4
    assert done.stdout == "=== tests\nout\n"
    assert done.stderr.startswith("err\n")
    assert "FAILED (status 4)" in done.stderr


def test_closing_lines_are_kept() -> None:
    done = run("step.sh", "--keep", "passed|skipped", "tests", "printf", "noise\n3 passed\n1 skipped\n")
    assert done.stdout.splitlines()[1:] == ["3 passed", "1 skipped"]


def test_a_closing_line_need_not_be_there() -> None:
    assert run("step.sh", "--keep", "passed", "tests", "true").returncode == 0


def test_there_are_no_escape_codes_where_there_is_no_terminal() -> None:
    for arguments in (["a", "true"], ["--show", "a", "true"], ["a", "false"]):
        done = run("step.sh", *arguments)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\r" not in done.stdout + done.stderr


def test_a_terminal_shows_progress_and_then_one_line(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    master, terminal = os.openpty()
    command = [str(SCRIPTS / "step.sh"), "library", "bash", "-c", f"echo compiling; read -r < {gate}"]
    environment = {**os.environ, "V": "", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        seen = b""
        while b"compiling" not in seen:  # until then, the command does not end
            seen += os.read(master, 4096)
        gate.write_text("go on\n")
        assert process.wait() == 0
    ending = b"".join(iter(lambda: printed(master), b"")).decode()
    os.close(master)
    assert re.search(r"\r\x1b\[Klibrary +\d+\.\d s\r\n$", ending)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "V": "", "TMPDIR": str(tmp_path)}
    for command in ("true", "false"):
        subprocess.run([SCRIPTS / "step.sh", "x", command], capture_output=True, env=environment, check=False)
    assert list(tmp_path.iterdir()) == []


def test_suites_go_on_after_a_failure_and_end_with_a_summary() -> None:
    done = run("suites.sh", "all", "one", "exit 2", "--keep", "passed", "two", "echo 5 passed; echo noise")
    assert done.returncode == 1
    assert "all: one" in done.stderr
    *_, first, second, last = done.stdout.splitlines()
    assert re.fullmatch(r"one +\d+ s  FAILED", first)
    assert re.fullmatch(r"two +\d+ s  passed", second)
    assert re.fullmatch(r"all: 1 of 2 suites failed, \d+ s", last)
    assert "5 passed" in done.stdout
    assert "noise" not in done.stdout


def test_a_suite_beside_the_others_runs_with_them_and_prints_after_them(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    done = run(
        "suites.sh",
        "all",
        "--beside",
        "--show",
        "one",
        f"read -r < {gate}; echo 1; false",
        "--show",
        "two",
        f"echo 2; echo > {gate}",
    )
    assert done.returncode == 1
    *_, first, second, last = done.stdout.splitlines()
    assert re.fullmatch(r"one +\d+ s  FAILED", first)
    assert re.fullmatch(r"two +\d+ s  passed", second)
    assert last.startswith("all: 1 of 2 suites failed")
    assert done.stdout.index("\n2\n") < done.stdout.index("\n1\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_suite_beside_the_others_ends_with_them(tmp_path: Path, number: signal.Signals) -> None:
    gate, pids = tmp_path / "gate", (tmp_path / "one", tmp_path / "two")
    os.mkfifo(gate)
    blocks = [f"echo $$ > {path}; read -r < {gate}" for path in pids]  # nobody ever writes into the gate
    command = [str(SCRIPTS / "suites.sh"), "all", "--beside", "one", blocks[0], "two", blocks[1]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as suites:
        until(lambda: all(path.exists() and path.read_text() for path in pids), "both suites run")
        os.killpg(suites.pid, number)  # as a terminal does, which knows only the foreground process group
        until(lambda: suites.poll() is not None, "suites.sh ended")
        assert suites.returncode != 0
    for path in pids:
        until(lambda path=path: not Path(f"/proc/{path.read_text().strip()}").exists(), f"suite {path.name} ended")


def test_suites_that_all_pass_are_a_success() -> None:
    assert run("suites.sh", "all", "--show", "one", "true", "two", "true").returncode == 0
