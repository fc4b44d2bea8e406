# SPDX-License-Identifier: BSD-2-Clause
"""Selectors of namespaces, as the API server evaluates them."""

from __future__ import annotations

from typing import Any

import pytest

from shai_operator.reconcile import selectors


def requires(operator: str, *values: str, key: str = "team") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


CASES: list[tuple[dict[str, Any] | None, set[str]]] = [
    (None, set()),
    ({}, {"a", "b", "empty", "none"}),
    ({"matchLabels": {}}, {"a", "b", "empty", "none"}),
    ({"matchLabels": {"team": "a"}}, {"a"}),
    ({"matchLabels": {"team": ""}}, {"empty"}),
    ({"matchLabels": {"team": "a", "tier": "x"}}, set()),
    (requires("In", "a", "b"), {"a", "b"}),
    (requires("In", ""), {"empty"}),
    (requires("NotIn", "a"), {"b", "empty", "none"}),
    (requires("NotIn", ""), {"a", "b", "none"}),
    (requires("Exists"), {"a", "b", "empty"}),
    (requires("DoesNotExist"), {"none"}),
    ({"matchLabels": {"tier": "x"}, **requires("NotIn", "a")}, {"b"}),
    (requires("Unheard"), set()),
]
"""Selectors, and which of `LABELS` they find; a test compares the same with a real API server."""
LABELS: dict[str, dict[str, str]] = {
    "a": {"team": "a"},
    "b": {"team": "b", "tier": "x"},
    "empty": {"team": ""},
    "none": {"other": "a"},
}


@pytest.mark.parametrize(("selector", "found"), CASES)
def test_a_selector_finds(selector: dict[str, Any] | None, found: set[str]) -> None:
    assert {name for name, labels in LABELS.items() if selectors.matches(selector, labels)} == found
