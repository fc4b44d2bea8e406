# SPDX-License-Identifier: BSD-2-Clause
"""How much the demo does at each size."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = 0
"""Session length that stands for one session for the whole run."""

MODES = ("baseline", "dynamic", "shai")


@dataclass(frozen=True)
class Plan:
    """One size. A round runs every mode once at every session length, ``slice_seconds`` each."""

    name: str
    corpus: str
    """Where text comes from: "gcide" (Debian's dict-gcide) or "generated" (from the seed)."""
    documents: int
    users: int
    friends: int
    rounds: int
    slice_seconds: float
    session_lengths: tuple[int, ...]
    warm_up_seconds: float
    """Load on every stack before the first slice; the search engine's compiler needs it."""
    concurrent_users: int = 24

    @property
    def slices(self) -> int:
        """How many slices the whole measurement has."""
        return self.rounds * len(self.session_lengths) * len(MODES)

    @property
    def seconds(self) -> float:
        """Expected time of the measurement, with what a slice costs around its load."""
        return 2 * self.warm_up_seconds + self.slices * (self.slice_seconds + 0.8)


_LENGTHS = (1, 8, 32, UNLIMITED)
_PAPER_LENGTHS = (1, 2, 4, 8, 16, 32, UNLIMITED)

_SMOKE = Plan(
    name="smoke",
    corpus="gcide",
    documents=2_000,
    users=300,
    friends=20,
    rounds=1,
    slice_seconds=2.0,
    warm_up_seconds=4.0,
    session_lengths=_LENGTHS,
)
_QUICK = Plan(
    name="quick",
    corpus="gcide",
    documents=25_000,
    users=2_000,
    friends=100,
    rounds=7,
    slice_seconds=2.5,
    warm_up_seconds=25.0,
    session_lengths=_LENGTHS,
)
_STANDARD = Plan(
    name="standard",
    corpus="gcide",
    documents=120_000,
    users=10_000,
    friends=100,
    rounds=12,
    slice_seconds=5.0,
    warm_up_seconds=60.0,
    session_lengths=_PAPER_LENGTHS,
)
_PAPER = Plan(
    name="paper",
    corpus="generated",
    documents=1_000_000,
    users=40_000,
    friends=100,
    rounds=40,
    slice_seconds=20.0,
    warm_up_seconds=120.0,
    session_lengths=_PAPER_LENGTHS,
)

PLANS = {plan.name: plan for plan in (_SMOKE, _QUICK, _STANDARD, _PAPER)}
