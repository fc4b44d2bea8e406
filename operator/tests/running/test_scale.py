# SPDX-License-Identifier: BSD-2-Clause
"""What the operator asks of the API server grows no faster than the definitions. Times: python -m testing.scale."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from testing import scale

if TYPE_CHECKING:
    from pathlib import Path

POLICIES, PIPELINES = 60, 6
"""Enough for a request per pair of objects to stand out."""


def test_requests_grow_with_the_definitions(tmp_path: Path) -> None:
    first, change, again = scale.world(tmp_path / "scale", "test", POLICIES, PIPELINES, pool_first=True)
    spent = Counter(first.requests)
    assert spent["create PolicyRevision"] == POLICIES
    # One when it comes, one when it is judged, one when it is known where it is rolled out.
    assert spent["status Policy"] <= 4 * POLICIES
    # For each reason to wait that an object applied bit by bit may give in between.
    assert spent["status Pipeline"] <= 12 * PIPELINES
    assert spent["status Task"] <= 4 * PIPELINES
    assert _others(spent) <= POLICIES, spent
    assert sum(change.requests.values()) <= 3 * PIPELINES + 20, change.requests
    # One started anew does not know what it owns of a status, and says everything once more.
    assert sum(again.requests.values()) <= 4 * (POLICIES + 2 * PIPELINES) + 20, again.requests


def _others(spent: Counter[str]) -> int:
    """Count the requests that no object of the user's explains; comparisons with lists come by time."""
    explained = {"create PolicyRevision", "status Policy", "status Pipeline", "status Task"}
    return sum(count for key, count in spent.items() if key not in explained and not key.startswith("list "))
