# SPDX-License-Identifier: BSD-2-Clause
"""The operator's requests grow no faster than the definitions. For times: python -m testing.scale."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from testing import scale

if TYPE_CHECKING:
    from pathlib import Path

POLICIES, PIPELINES = 60, 6
"""Enough to notice one request for each pair of objects."""


def test_requests_grow_with_the_definitions(tmp_path: Path) -> None:
    first, change, again = scale.world(tmp_path / "scale", "test", POLICIES, PIPELINES, pool_first=True)
    spent = Counter(first.requests)
    assert spent["create PolicyRevision"] == POLICIES
    # One when it is created, one when it is judged, one when the place of its rollout is known.
    assert spent["status Policy"] <= 4 * POLICIES
    # One for each reason to wait, when objects are applied one after the other.
    assert spent["status Pipeline"] <= 12 * PIPELINES
    assert spent["status Task"] <= 4 * PIPELINES
    assert _others(spent) <= POLICIES, spent
    assert sum(change.requests.values()) <= 3 * PIPELINES + 20, change.requests
    # A restarted operator does not know which fields of a status it owns, and writes every status once.
    assert sum(again.requests.values()) <= 4 * (POLICIES + 2 * PIPELINES) + 20, again.requests


def _others(spent: Counter[str]) -> int:
    """Count the requests that no object of the user explains; comparisons with lists depend only on time."""
    explained = {"create PolicyRevision", "status Policy", "status Pipeline", "status Task"}
    return sum(count for key, count in spent.items() if key not in explained and not key.startswith("list "))
