# SPDX-License-Identifier: BSD-2-Clause
"""The measurement with the fast engine, on the real stack with counts too small to say anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.plan import CONTROL, MODES
from loadgen.results import samples
from loadgen.tests.harness import MARK, ROOT, left_over

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = 3_000_000
BRIEF = (
    "--rounds", "1", "--slice-seconds", "0.5", "--warm-up-seconds", "0.5", "--concurrent-users", "4",
    "--session-lengths", "1", "0", "--users", "24", "--busy-cycles", str(BUSY),
)  # fmt: skip
FASTEST_CYCLES = 8e9
"""In a second: no processor turns faster, so the engine's work takes at least this share of it."""


@pytest.fixture
def output() -> Iterator[Path]:
    """Make a directory that tasks can search, which run as other users."""
    made = Path(tempfile.mkdtemp(prefix="shai-fast-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def measure(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loadgen", "fast", "--output", str(output), *options],
        cwd=ROOT, env={**os.environ, MARK: str(output)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_modes_are_compared_with_an_engine_of_known_cost(output: Path) -> None:
    done = measure(output, *BRIEF)
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
def test_numbers_out_of_range_are_refused(output: Path, option: str) -> None:
    done = measure(output, option)
    assert done.returncode == 2
    assert "invalid _" in done.stderr
