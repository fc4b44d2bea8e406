# SPDX-License-Identifier: BSD-2-Clause
"""The command line, run as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.__main__ import COMMANDS
from loadgen.driving import metrics
from loadgen.tests.harness import ROOT


def loadgen(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loadgen", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_help_lists_what_there_is() -> None:
    done = loadgen("--help")
    assert done.returncode == 0
    listed = done.stdout.partition("commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in listed.splitlines()] == sorted(COMMANDS)
    assert str(Path("loadgen/scenarios/spike.py")) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["table", "nowhere.json"], "loadgen table: cannot read nowhere.json"),
        (
            ["dataset", "--syse", "nowhere", "--output", "out"],
            "loadgen dataset: nowhere/syse.jar is missing: run `make",
        ),
        (["verify", "--member", "nowhere.json", "--logs", "out"], "loadgen verify: cannot read nowhere.json"),
    ],
)
def test_a_failure_is_one_line_without_a_trace(arguments: list[str], says: str) -> None:
    done = loadgen(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(says)
    assert len(done.stderr.splitlines()) == 1


def test_the_metrics_are_printed_for_the_reference() -> None:
    found = json.loads(loadgen("metrics", "--output", "json").stdout)
    assert [entry["name"] for entry in found] == [metric.name for metric in metrics.TABLE]
    assert all(entry.keys() == {"name", "type", "labels", "unit", "meaning"} for entry in found)
    assert all(f"{entry['name']}  (" in loadgen("metrics").stdout for entry in found[:1])
