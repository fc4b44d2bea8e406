# SPDX-License-Identifier: BSD-2-Clause
"""scripts/bench.sh, and the one of its measurements that takes seconds."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def bench(*names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "scripts" / "bench.sh", *names], capture_output=True, text=True, timeout=300, check=False
    )


def test_without_a_name_measurements_are_listed_with_their_commands() -> None:
    lines = [line.strip() for line in bench().stdout.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("rollback "))
    assert lines[at + 1] == "make setup && make -C supervisor bench-rollback"


def test_measurements_of_go_run_no_tests() -> None:
    """An expression in the wrong quotes matches all of them."""
    commands = [line.strip() for line in bench().stdout.splitlines() if line.strip().startswith("go test ")]
    assert commands
    assert [command for command in commands if "-run='^$'" not in command] == []


def test_an_unknown_measurement_is_an_error() -> None:
    done = bench("unheard-of")
    assert (done.returncode, done.stderr) == (2, "bench: there is no measurement unheard-of; make bench lists them\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="workers are rolled back on x86-64 only")
def test_rolling_back_is_measured_beside_forking() -> None:
    done = bench("rollback")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [(row[0], row[1]) for row in rows] == [
        ("16", "0"), ("64", "0"), ("256", "0"), ("1024", "0"), ("4096", "0"),
        ("64", "16"), ("64", "128"), ("64", "1024"),
    ]  # fmt: skip
    assert all(len(row) == 2 + 5 * 3 for row in rows), "five figures with their intervals"
    assert "A forked worker that writes no page takes" in done.stdout
