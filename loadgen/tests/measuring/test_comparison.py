# SPDX-License-Identifier: BSD-2-Clause
"""A scenario with a threshold that compares with mode baseline, with stand-ins for the monitor and Sys-E."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadgen.measuring.comparison import ComparisonError, check
from loadgen.stacks import member as members
from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.tests.serving_member import ServingMember


def scenario(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loadgen", "scenario", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment or {**os.environ}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize(("threshold", "status"), [("overhead>1000000%", 0), ("throughput_overhead<1000%", 3)])
def test_overhead_is_measured_beside_mode_baseline(member: ServingMember, threshold: str, status: int) -> None:
    described = member.root / "written.json"
    members.write(members.read(member.describe()), described)
    words = ["spike", "--member", str(described), "--size", "smoke", "--rounds", "1", "--warm-up", "1", "--users", "4"]
    words += ["--results", str(member.output), "--fail-on", threshold, "--fail-on", "failures>0"]
    done = scenario(*words, environment=member.environment)
    assert done.returncode == status, done.stderr
    assert "scenario spike" in done.stdout
    assert "3 of 3 slices" in done.stderr
    found = json.loads((member.output / "results.json").read_text())
    assert found["scenario"] == "spike"
    assert [judged["exceeded"] for judged in found["thresholds"]] == [status == 3, False]
    assert json.loads((member.output / "plan.json").read_text())["modes"] == ["baseline", "shai"]
    assert (threshold in done.stderr) == (status == 3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "http://127.0.0.1:1"], "measures a pool's member (--member FILE) and not --host"),
        (["--run-time", "5s", "--member", "m.json"], "and not --run-time"),
        (["--member", "/nowhere"], "cannot read /nowhere"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(words: list[str], says: str, tmp_path: Path) -> None:
    done = scenario("spike", "--fail-on", "overhead>5%", "--results", str(tmp_path), *words)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert says in line


def test_a_directory_in_which_others_can_write_gets_no_results(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = scenario("spike", "--fail-on", "overhead>5%", "--results", str(tmp_path), "--member", "/nowhere")
    assert done.returncode == 1
    assert f"{tmp_path}: other users can write there" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("high", "believed"), [(None, True), (0.3, True), (-0.1, False)])
def test_enforcement_that_seems_to_save_time_is_not_believed(high: float | None, believed: bool) -> None:  # noqa: FBT001
    figure = {"cpuOverhead": {"estimate": -0.2, "low": -0.3, "high": high}}
    results = {"throughput": [{"sessionLength": 32, "baseline": {}, "shai": figure, "control": {}}]}
    if believed:
        check(results, 30)
    else:
        with pytest.raises(ComparisonError, match=r"mode shai seems to take less CPU time .* --warm-up 120"):
            check(results, 30)
