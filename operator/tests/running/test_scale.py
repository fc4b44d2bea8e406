# SPDX-License-Identifier: BSD-2-Clause
"""The operator's requests grow no faster than the definitions. For times: make bench-operator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from testing.scaling import worlds

if TYPE_CHECKING:
    from pathlib import Path

POLICIES, PIPELINES = 60, 6
"""Enough to notice one request for each pair of objects."""


def test_requests_grow_with_the_definitions(tmp_path: Path) -> None:
    first, change, again = worlds.accepted(tmp_path / "scale", "test", (POLICIES, PIPELINES), pool_first=True)
    spent = Counter(first.requests)
    assert spent["create PolicyRevision"] == POLICIES
    # One when it is judged, one when the place of its rollout is known, and then one for what follows from that.
    assert spent["status Policy"] <= 3 * POLICIES + 10
    # One for each reason to wait, when objects are applied one after the other.
    assert spent["status Pipeline"] <= 6 * PIPELINES
    assert spent["status Task"] <= 2 * PIPELINES
    assert _others(spent) <= POLICIES, spent
    assert _writes(change.requests) <= 3 * PIPELINES + 10, change.requests
    # A restarted operator finds the statuses as they should be.
    assert _writes(again.requests) <= PIPELINES, again.requests


def _others(spent: Counter[str]) -> int:
    """Count the requests that no object of the user explains; comparisons with lists depend only on time."""
    explained = {"create PolicyRevision", "status Policy", "status Pipeline", "status Task"}
    return sum(count for key, count in spent.items() if key not in explained and not key.startswith("list "))


def _writes(spent: dict[str, int]) -> int:
    return sum(count for key, count in spent.items() if not key.startswith(("list ", "get ")))
