# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shai_operator.reconcile import judging
from shai_operator.reconcile.judging import OVERHEAD_FLOOR_MICROSECONDS, Limits, Usage, judge, usage
from shai_operator.reconcile.members import Sample, remember

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def sample(second: int, sessions: int, *, release: str = "new", started: str = "1") -> Sample:
    return Sample(NOW + timedelta(seconds=second), started, release, sessions, sessions * 10, sessions, sessions * 1000)


def used(sessions: int) -> Usage:
    return Usage(sessions, sessions * 10, sessions, sessions * 1000)


@pytest.mark.parametrize(
    ("samples", "since", "sessions"),
    [
        ([], 0, 0),
        ([sample(0, 5)], 0, 0),  # one sample says nothing about a window
        ([sample(0, 5), sample(9, 8)], 0, 3),
        ([sample(0, 5), sample(9, 8), sample(10, 12)], 9, 4),  # the window starts later
        ([sample(0, 5), sample(9, 2, started="2"), sample(20, 6, started="2")], 0, 6),  # a restart in between
        # a restart, after which the counters are higher
        ([sample(0, 5), sample(9, 9, started="2"), sample(20, 12, started="2")], 0, 12),
        ([sample(0, 5), sample(5, 8), sample(9, 1, started="2"), sample(12, 2, started="3")], 0, 6),  # two restarts
        ([sample(0, 5), sample(9, 2, started="2")], 1, 0),  # a restart when the window had not begun, perhaps
        ([sample(9, 7, started="2")], 0, 0),  # its former process is not known
        ([sample(0, 5), sample(9, 9, release="old"), sample(20, 14)], 0, 0),  # a swap in between
        ([sample(0, 5, release="old"), sample(9, 9), sample(20, 14)], 0, 5),  # after the swap
        ([sample(0, 5), sample(9, 2), sample(20, 6)], 0, 4),  # counters decreased: the process has changed nevertheless
    ],
)
def test_usage_counts_within_one_process_and_release(samples: list[Sample], since: int, sessions: int) -> None:
    assert usage(samples, "new", NOW + timedelta(seconds=since)) == used(sessions)


@given(st.lists(st.tuples(st.integers(0, 90), st.sampled_from(["old", "new"]), st.sampled_from(["1", "2"]))))
def test_usage_is_never_negative(drawn: list[tuple[int, str, str]]) -> None:
    samples = [
        sample(second, sessions, release=release, started=started)
        for second, (sessions, release, started) in enumerate(drawn)
    ]
    found = usage(samples, "new")
    assert min(found.sessions, found.decisions, found.refusals, found.microseconds) >= 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=1500))
def test_thinning_loses_no_session_of_one_process(steps: list[int]) -> None:
    kept: tuple[Sample, ...] = ()
    count = 0
    for second, step in enumerate(steps):
        count += step
        kept = remember(kept, sample(second, count))
    assert len(kept) <= 512
    assert usage(kept, "new").sessions == count - steps[0]


@given(every=st.integers(50, 400), steps=st.integers(1, 1500))
@example(every=51, steps=1500)
def test_thinning_and_restarts_lose_nothing_that_was_ever_seen_and_count_nothing_twice(every: int, steps: int) -> None:
    """The monitor is started again after so many samples, and begins with 0."""
    kept: tuple[Sample, ...] = ()
    served = total = 0
    for second in range(steps):
        started = second % every == 0
        served = 1 if started else served + 2
        total += (0 if second == 0 else 1) if started else 2
        kept = remember(kept, sample(second, served, started=str(second // every)))
    assert len(kept) <= 512
    assert usage(kept, "new").sessions == total


def test_a_monitor_that_is_always_started_again_fills_no_memory() -> None:
    kept: tuple[Sample, ...] = ()
    for second in range(2000):
        kept = remember(kept, sample(second, 1, started=str(second)))
    assert len(kept) <= 512


def both(changed: Usage, others: Usage, limits: Limits | None = None, *, concurrent: bool = True) -> tuple[str, str]:
    judgement = judge(changed, others, concurrent=concurrent, limits=limits or Limits(minimum_sessions=20))
    return judgement.verdict, judgement.message


@pytest.mark.parametrize(
    ("refusals", "verdict"), [(0, "Promote"), (60, "Promote"), (61, "RollBack"), (1000, "RollBack")]
)
def test_denials_may_grow_by_so_many_points(refusals: int, verdict: str) -> None:
    others = Usage(100, 1000, 10, 1000)  # 1 %
    assert both(Usage(100, 1000, refusals, 1000), others)[0] == verdict


@pytest.mark.parametrize(
    ("changed", "others", "verdict"),
    [
        (15_000, 10_000, "Promote"),
        (15_001, 10_000, "RollBack"),
        (OVERHEAD_FLOOR_MICROSECONDS + 1, 1, "Promote"),  # two thousand times as much, but still negligible
        (OVERHEAD_FLOOR_MICROSECONDS + 2, 1, "RollBack"),
        (1, 10_000, "Promote"),
    ],
)
def test_overhead_may_grow_by_so_much(changed: int, others: int, verdict: str) -> None:
    verdicts = both(Usage(100, 1000, 0, changed * 100), Usage(100, 1000, 0, others * 100))
    assert verdicts[0] == verdict, verdicts[1]


@pytest.mark.parametrize(
    ("changed", "others", "concurrent", "verdict"),
    [
        (19, 100, True, "Inconclusive"),
        (20, 100, True, "Promote"),
        (20, 19, True, "Inconclusive"),
        (20, 0, False, "Promote"),  # waiting gives no more data of the time before
    ],
)
def test_too_little_is_not_judged(changed: int, others: int, *, concurrent: bool, verdict: str) -> None:
    fine = Usage(changed, changed * 10, 0, changed), Usage(others, others * 10, 0, others)
    assert both(*fine, concurrent=concurrent)[0] == verdict


def test_without_anything_to_compare_denials_still_count() -> None:
    verdict, message = both(Usage(100, 1000, 100, 10**9), Usage(), concurrent=False)
    assert verdict == judging.ROLL_BACK
    assert "no sessions were seen before" in message


def test_sessions_without_decisions_are_no_denials() -> None:
    assert both(Usage(sessions=50), Usage(sessions=50))[0] == "Promote"
