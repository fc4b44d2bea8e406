# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shai_operator.reconcile import allowlist
from shai_operator.reconcile.allowlist import SourceError

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "monitor/internal/allowlist/testdata/cases.json").read_text()
)
"""The cases that the monitor's tests read, too (TestEntries, TestOrigins, TestSockets)."""


@pytest.mark.parametrize("entry", CASES["entries"])
def test_entries_that_the_monitor_takes_are_taken(entry: str) -> None:
    allowlist.parse((entry,))


@pytest.mark.parametrize("entry", CASES["malformed"])
def test_entries_that_the_monitor_refuses_are_refused(entry: str) -> None:
    with pytest.raises(SourceError):
        allowlist.parse((entry,))


@pytest.mark.parametrize("case", CASES["origins"], ids=lambda case: case["about"])
def test_urls_are_allowed_as_the_monitor_allows_them(case: dict[str, Any]) -> None:
    allowed = allowlist.parse(tuple(case["list"]))
    assert [url for url in case.get("allowed", ()) if not allowed.allows_url(url)] == []
    assert [url for url in case["refused"] if allowed.allows_url(url)] == []


@pytest.mark.parametrize("case", CASES["sockets"], ids=lambda case: case["about"])
def test_sockets_are_allowed_as_the_monitor_allows_them(case: dict[str, Any]) -> None:
    allowed = allowlist.parse(tuple(case["list"]))
    assert [path for path in case.get("allowed", ()) if not allowed.allows_socket(path)] == []
    assert [path for path in case["refused"] if allowed.allows_socket(path)] == []
