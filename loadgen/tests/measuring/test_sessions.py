# SPDX-License-Identifier: BSD-2-Clause
"""The measurement of sessions, on the real stack with counts too small to say anything."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from loadgen.results import samples, sessions
from loadgen.tests.harness import ROOT, left_over

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Measure = Callable[..., subprocess.CompletedProcess[str]]

BRIEF = (
    "--rounds", "1", "--slice-seconds", "0.5", "--warm-up-seconds", "0.5", "--concurrent-users", "4",
    "--live", "34", "--revoked", "4", "--beside", str(ROOT),
)  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_sessions_are_measured_on_the_real_stack(measure: Measure, output: Path) -> None:
    done = measure("sessions", *BRIEF)
    assert done.returncode == 0, done.stderr
    found = json.loads((output / "session.json").read_text())
    for name in (
        "added_cpu_us_per_session", "added_cpu_us_per_query", "cpu_us_per_interception",
        "cpu_us_per_interception_dynamic", "cpu_us_per_interception_dynamic_lazy",
        "control_us_per_session", "ed25519_cpu_us_per_session",
    ):  # fmt: skip
        assert found[name].keys() == {"value", "low", "high"}
    for kind in ("faults", "switches", "syscalls"):
        assert found[kind].keys() == {"baseline", "forked", "shai", "process"}
    assert found["faults"]["forked"] > found["faults"]["baseline"], "each session has a process of its own"
    assert found["unsealed"] is None
    assert found["faults"]["process"] > found["faults"]["shai"] + 10, "workers are rolled back"
    assert found["by_process"]["shai"]["cpu_us_per_session"]["worker"] > 0
    assert found["interceptions_per_query"]["dynamic"] > 0
    assert found["interceptions_per_query"]["dynamic-lazy"] > 0
    assert found["interceptions_per_query"]["shai"] == 0
    assert found["sessions_per_second"].keys() == {*sessions.BARE_SERIES, sessions.BESIDE}
    assert all(rate["value"] > 0 for rate in found["sessions_per_second"].values())
    assert found["beside"]["sessions_per_second_ratio"]["value"] > 0
    for kind in ("live", "live_process"):
        held = found[kind]
        assert (held["live"], held["wanted"], held["pipelines"], held["revoked"], held["limit"]) == (34, 34, 1, 4, None)
        assert held["revoked_ms"] > 0
    assert (output / "session.txt").read_text() == done.stdout
    assert len(samples.read(output / "samples.csv")) == 15
    assert left_over(str(output)) == {}


def test_an_output_that_tasks_cannot_reach_is_refused(measure: Measure, output: Path) -> None:
    output.chmod(0o700)
    done = measure("sessions", *BRIEF, to=output / "inner")
    assert done.returncode == 1
    assert f"cannot search {output}" in done.stderr or "needs root" in done.stderr


@pytest.mark.parametrize(("option", "missing"), [("--image", ""), ("--beside", "/build/images/default")])
def test_missing_programs_are_named(measure: Measure, option: str, missing: str) -> None:
    done = measure("sessions", option, "/nowhere")
    assert done.returncode == 1
    assert f"/nowhere{missing} is missing: run `make build-image` in its checkout" in done.stderr
