# SPDX-License-Identifier: BSD-2-Clause
"""docs/benchmarks.md says what the programs say."""

from __future__ import annotations

import pytest

from loadgen.scenarios.definitions import SCENARIOS, Scenario
from loadgen.scenarios.outcomes import Status
from loadgen.tests.harness import ROOT
from loadgen.thresholds import QUANTITIES

LINES = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_each_scenario_is_described(scenario: Scenario) -> None:
    assert (
        f"| `{scenario.name}` | {scenario.description} | {scenario.question} | {scenario.seconds['quick']} |" in LINES
    )


@pytest.mark.parametrize("name", QUANTITIES)
def test_each_quantity_is_described(name: str) -> None:
    assert f"| `{name}` | {QUANTITIES[name].kind} | {QUANTITIES[name].meaning} |" in LINES


@pytest.mark.parametrize("status", Status)
def test_each_exit_status_is_described(status: Status) -> None:
    assert any(line.startswith(f"| {int(status)} | ") for line in LINES)
