# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.results import estimates

rates = st.floats(min_value=1.0, max_value=1e5)
shares = st.floats(min_value=-0.5, max_value=0.9)
seeds = st.integers(min_value=0, max_value=2**32)


@given(base=st.lists(rates, min_size=2, max_size=12), share=shares, seed=seeds)
def test_a_known_overhead_is_recovered_whatever_the_drift(base: list[float], share: float, seed: int) -> None:
    """Rounds may differ by orders of magnitude: pairing within the round cancels this."""
    found = estimates.overhead([rate * (1 - share) for rate in base], base, seed)
    assert found.value == pytest.approx(share, abs=1e-9)
    assert found.high - found.low == pytest.approx(0, abs=1e-9)


@given(base=st.lists(rates, min_size=2, max_size=12), added=st.floats(min_value=-50, max_value=50), seed=seeds)
def test_a_known_difference_is_recovered(base: list[float], added: float, seed: int) -> None:
    assert estimates.difference([rate + added for rate in base], base, seed).value == pytest.approx(added, abs=1e-6)


@given(values=st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2, max_size=15), seed=seeds)
def test_the_interval_holds_the_estimate_and_stays_within_the_values(values: list[float], seed: int) -> None:
    found = estimates.median(values, seed)
    assert min(values) <= found.low <= found.value <= found.high <= max(values)
    assert found == estimates.median(values, seed)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    source = random.Random(20260101)
    truth, covered = 0.05, 0
    for trial in range(300):
        base = [1000 * math.exp(source.gauss(0, 0.3)) for _ in range(12)]
        noisy = [rate * (1 - truth + source.gauss(0, 0.02)) for rate in base]
        found = estimates.overhead(noisy, base, trial)
        covered += found.low <= truth <= found.high
    assert 0.90 <= covered / 300 <= 0.99


@pytest.mark.parametrize(
    ("estimate", "below", "imprecise"),
    [
        (estimates.Estimate(0.05, 0.04, 0.06), False, False),
        (estimates.Estimate(-0.05, -0.06, -0.04), False, False),
        (estimates.Estimate(0.01, -0.02, 0.03), True, False),
        (estimates.Estimate(0.05, 0.01, 0.07), False, True),
        (estimates.Estimate(0.05, -math.inf, math.inf), True, False),
    ],
)
def test_caveats(estimate: estimates.Estimate, *, below: bool, imprecise: bool) -> None:
    assert estimate.below_noise is below
    assert estimate.imprecise is imprecise


def test_one_round_gives_no_interval() -> None:
    assert estimates.median([3.0], 1) == estimates.Estimate(3.0, -math.inf, math.inf)


def test_nothing_gives_no_estimate() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        estimates.median([], 1)


def test_unequal_rounds_are_not_paired() -> None:
    with pytest.raises(ValueError, match="zip"):
        estimates.overhead([1.0], [1.0, 2.0], 1)
