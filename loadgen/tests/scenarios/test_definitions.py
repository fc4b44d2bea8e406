# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from loadgen import thresholds
from loadgen.datasets.sizes import DATASETS
from loadgen.scenarios.definitions import SCENARIOS, Scenario
from loadgen.tests.harness import ROOT

FOLDER = ROOT / "loadgen" / "scenarios"


def test_each_scenario_has_a_file_and_each_such_file_a_scenario() -> None:
    files = {path.stem for path in FOLDER.glob("*.py") if "by_hand import Shape" in path.read_text()}
    assert files == set(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_whole(scenario: Scenario) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", scenario.name)
    assert sum(phase.share for phase in scenario.phases) == pytest.approx(1.0)
    assert len({phase.name for phase in scenario.phases}) == len(scenario.phases)
    assert max(max(phase.begin, phase.end) for phase in scenario.phases) <= 1.0
    assert set(scenario.seconds) == set(DATASETS)
    assert all(thresholds.parse(text) for text in scenario.fails_on)
    assert scenario.question.endswith((".", "?"))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_its_file_says_the_same(scenario: Scenario) -> None:
    text = (FOLDER / f"{scenario.name}.py").read_text()
    said = ast.get_docstring(ast.parse(text)) or ""
    assert said.startswith(f"Locust: {scenario.description}.")
    assert f"locust -f loadgen/scenarios/{scenario.name}.py" in said
    assert f'scenario = SCENARIOS["{scenario.name}"]' in text


def test_the_list_needs_no_locust() -> None:
    program = "import sys; import loadgen.scenarios.definitions; sys.exit('locust' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
