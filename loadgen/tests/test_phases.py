# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.phases import Moment, Phase, level, moment
from loadgen.scenarios.definitions import SCENARIOS

if TYPE_CHECKING:
    from loadgen.scenarios.definitions import Scenario

SPIKE = (level("before", 0.4, 0.25), level("spike", 0.2, 1.0), Phase("after", 0.4, 1.0, 0.0))


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        (0.0, Moment("before", 25)),
        (39.9, Moment("before", 25)),
        (40.0, Moment("spike", 100)),
        (60.0, Moment("after", 100)),
        (80.0, Moment("after", 50)),
        (99.999, Moment("after", 1)),
        (100.0, None),
        (1e9, None),
    ],
)
def test_moments(elapsed: float, expected: Moment | None) -> None:
    assert moment(SPIKE, elapsed, 100.0, 100) == expected


@given(
    st.sampled_from(list(SCENARIOS.values())),
    st.floats(0, 1, exclude_max=True),
    st.floats(0.1, 1e6),
    st.integers(1, 10_000),
)
def test_every_moment_of_a_scenario_has_users(scenario: Scenario, part: float, seconds: float, users: int) -> None:
    now = moment(scenario.phases, part * seconds, seconds, users)
    assert now is not None
    assert 1 <= now.users <= users
    assert now.phase in {phase.name for phase in scenario.phases}
