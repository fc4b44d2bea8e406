# SPDX-License-Identifier: BSD-2-Clause
"""The measurement with the fast engine, on the real stack with counts too small to say anything."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from loadgen.plan import CONTROL, MODES
from loadgen.results import samples
from loadgen.tests.harness import left_over

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Measure = Callable[..., subprocess.CompletedProcess[str]]

BUSY = 3_000_000
BRIEF = (
    "--rounds", "1", "--slice-seconds", "0.5", "--warm-up-seconds", "0.5", "--concurrent-users", "4",
    "--session-lengths", "1", "0", "--users", "24", "--busy-cycles", str(BUSY),
)  # fmt: skip
FASTEST_CYCLES = 8e9
"""In a second: no processor turns faster, so the engine's work takes at least this share of it."""


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_modes_are_compared_with_an_engine_of_known_cost(measure: Measure, output: Path) -> None:
    done = measure("fast", *BRIEF)
    assert done.returncode == 0, done.stderr
    found = json.loads((output / "results.json").read_text())
    assert found["size"]["busyCycles"] == BUSY
    assert [entry["sessionLength"] for entry in found["throughput"]] == [1, 0]
    assert found["throughput"][0].keys() == {"sessionLength", *MODES, CONTROL}
    measured = samples.read(output / "samples.csv")
    assert len(measured) == len(MODES) * 2 + 2
    for sample in measured:
        assert sample.failures == sample.violations == 0
        assert sample.process_cpu_seconds["search"] >= sample.queries * BUSY / FASTEST_CYCLES
    for text in (done.stdout, (output / "table.txt").read_text()):
        assert f"{BUSY} cycles of them in place of a search" in text
        assert "Table I" not in text, "the paper has no such table of its fast engine"
    assert left_over(str(output)) == {}


@pytest.mark.parametrize("option", ["--busy-cycles=-1", "--rounds=0", "--session-lengths=-1"])
def test_numbers_out_of_range_are_refused(measure: Measure, option: str) -> None:
    done = measure("fast", option)
    assert done.returncode == 2
    assert "invalid " in done.stderr
