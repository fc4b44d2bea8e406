# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from shai_operator.control.ended_rollouts import EndedRollouts


def counts(*statuses: tuple[str, str]) -> tuple[int, int]:
    ended = EndedRollouts()
    for stable, rejected in statuses:
        ended.note({"stableRelease": stable} | ({"rejectedRelease": rejected} if rejected else {}))
    return ended.counts["completed"], ended.counts["rolled_back"]


def test_what_ended_before_the_operator_started_does_not_count() -> None:
    assert counts(("one", "two")) == (0, 0)
    assert counts(("one", "two"), ("one", "two")) == (0, 0)


def test_each_end_counts_once() -> None:
    assert counts(("", ""), ("one", "")) == (1, 0), "the first release"
    assert counts(("one", ""), ("two", ""), ("two", ""), ("three", "")) == (2, 0)
    assert counts(("one", ""), ("one", "two"), ("one", "two")) == (0, 1)
    assert counts(("one", ""), ("one", "two"), ("one", ""), ("one", "two")) == (0, 2), "the same change again"
    assert counts(("one", ""), ("one", "two"), ("three", "")) == (1, 1)


def test_a_pool_that_runs_nothing_any_more_completed_nothing() -> None:
    assert counts(("one", ""), ("", "")) == (0, 0)
