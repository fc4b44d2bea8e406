# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/unit-tests.sh says of test programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "unit-tests.sh"
PROGRAMS = {
    "three": 'echo "[  PASSED  ] 3 test(s)."',
    "two": 'echo "[  PASSED  ] 2 test(s)."',
    "silent": "true",
    "failing": 'echo "[  PASSED  ] 1 test(s)."; echo why it failed; exit 3',
    "killed": "kill -KILL $$",
    "failing-later": 'touch "$0.on"; until [ -e "$0.go" ]; do sleep 0.01; done; sleep 0.1; echo why later; exit 4',
    "failing-first": 'later=${0%first}later; until [ -e "$later.on" ]; do sleep 0.01; done; touch "$later.go"; exit 5',
}


def run(place: Path, *names: str) -> subprocess.CompletedProcess[str]:
    for name, text in PROGRAMS.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    words = [str(SCRIPT), *(str(place / name) for name in names)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_tests_of_all_programs_are_added_up(tmp_path: Path) -> None:
    done = run(tmp_path, "three", "two", "three")
    assert (done.returncode, done.stdout, done.stderr) == (0, "8 tests of 3 programs passed\n", "")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["three", "failing"], ["why it failed\n", "/failing failed with status 3\n"]),
        (["silent", "two"], ["/silent failed with status 0, but no number of tests\n"]),
        (["killed"], ["/killed failed with status 137\n"]),
        (["missing"], ["/missing failed with status 127\n"]),
        (["failing-later", "failing-first"], ["why later\n", "/failing-first failed with status 5\n"]),
    ],
)
def test_a_failure_is_shown_and_so_is_that_of_a_program_that_runs_still(
    tmp_path: Path, names: list[str], says: list[str]
) -> None:
    done = run(tmp_path, *names)
    assert (done.returncode, done.stdout) == (1, "")
    for text in says:
        assert text in done.stderr


def test_no_program_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 2
