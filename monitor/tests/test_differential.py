# SPDX-License-Identifier: BSD-2-Clause
"""The product against a second implementation of the documented language, which Z3 decides.

``--cases N`` asks more. The seed is printed with a failure; ``--seed N`` repeats it.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from monitor.tests.diaries import SHAI
from monitor.tests.differential import checks, mutants

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}: pytest {request.node.nodeid} --seed {seed}")
    return random.Random(seed)


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> int:
    number: int = request.config.getoption("--cases")
    return number or checks.CASES


def test_evaluation_is_as_documented(draw: random.Random, cases: int, tmp_path: Path) -> None:
    print(checks.evaluation(SHAI, tmp_path, draw, cases))


def test_comparison_has_no_counterexample(draw: random.Random, cases: int, tmp_path: Path) -> None:
    print(checks.comparison(SHAI, tmp_path, draw, cases))


def test_mutants_change_what_they_name() -> None:
    """Whether the checks above find them shows ``python -m monitor.tests.differential.mutants``, which takes longer."""
    for mutant in mutants.read():
        beside = (file.read_text() for file in (mutants.MONITOR / mutant.file).parent.glob("*_test.go"))
        tests = re.findall(r"^func (Test\w+)\(", "".join(beside), re.MULTILINE)
        assert mutant.found in mutants.CHECKS or any(re.search(mutant.found, name) for name in tests), mutant.name
        assert mutant.text(), mutant.name
