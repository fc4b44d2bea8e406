# SPDX-License-Identifier: BSD-2-Clause
"""Estimates with intervals from paired slices.

Slices of one round run close together in random order, so that the machine's drift affects all modes alike. Comparing
within a round cancels the drift. Estimates are medians, which a disturbed slice hardly changes. Intervals come from the
bootstrap over rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
RESAMPLES = 4000


@dataclass(frozen=True)
class Estimate:
    """A figure with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def below_noise(self) -> bool:
        """Whether the interval contains 0."""
        return self.low <= 0.0 <= self.high

    @property
    def imprecise(self) -> bool:
        """Whether there is an effect, but its interval is wider than the effect itself."""
        return not self.below_noise and self.high - self.low > abs(self.value)

    def plain(self, digits: int) -> dict[str, float | None]:
        """Return it as plain JSON values, rounded to so many digits after the point; ends without bound are null."""
        ends = {"low": self.low, "high": self.high}
        return {
            "value": round(self.value, digits),
            **{name: round(end, digits) if math.isfinite(end) else None for name, end in ends.items()},
        }


def median(values: Sequence[float], seed: int) -> Estimate:
    """Return the median of one value per round. With one round, the interval is unbounded."""
    if not values:
        raise ValueError("an estimate needs at least one value")
    sample = np.asarray(values, dtype=float)
    value = float(np.median(sample))
    if len(sample) == 1:
        return Estimate(value, -np.inf, np.inf)
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, len(sample), size=(RESAMPLES, len(sample)))
    medians = np.median(sample[picks], axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def overhead(enforced: Sequence[float], baseline: Sequence[float], seed: int) -> Estimate:
    """Return the share of the baseline's throughput that is lost (0.05 is 5 %), as the paper defines it.

    Both sequences are in queries per second and in the order of their rounds.
    """
    return median([1.0 - mode / base for mode, base in zip(enforced, baseline, strict=True)], seed)


def increase(enforced: Sequence[float], baseline: Sequence[float], seed: int) -> Estimate:
    """Return the additional cost relative to the baseline's (0.05 is 5 %), for costs in the order of their rounds."""
    return median([mode / base - 1.0 for mode, base in zip(enforced, baseline, strict=True)], seed)


def difference(enforced: Sequence[float], baseline: Sequence[float], seed: int) -> Estimate:
    """Return the additional cost in the unit of the costs, which are in the order of their rounds."""
    return median([mode - base for mode, base in zip(enforced, baseline, strict=True)], seed)
