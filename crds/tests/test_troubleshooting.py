# SPDX-License-Identifier: BSD-2-Clause
"""The table of docs/operations.md and the definitions know the same reasons of conditions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crds import kinds
from testing.cluster import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = {kind.kind: kind for kind in kinds.ALL}
NOTHING_TO_DO = {
    "Accepted", "AllReady", "BundlePending", "Cancelled", "Complete", "Deleting", "Draining", "Pending", "Provisioned",
    "Provisioning", "Replacing", "Running", "Scheduled", "Stable", "Starting", "Suspended", "Unused", "Updating",
    "Within",
}  # fmt: skip
"""Reasons of states that are normal, temporary or requested: they need no row."""


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the kinds, conditions and reasons of the table; an empty first cell repeats the one above."""
    text = (ROOT / "docs" / "operations.md").read_text()
    table = text.partition("## Troubleshooting by condition")[2].partition("\n## ")[0]
    places: list[tuple[str, str]] = []
    for line in re.findall(r"^\| (?!kind,|---)(.*) \|$", table, re.MULTILINE):
        first, reasons = (cell.strip() for cell in f" {line}".split(" | ")[:2])
        if first.strip("| "):
            pairs = [part.split(": ") for part in first.split("; ")]
            places = [
                (kind, condition)
                for names, types in pairs
                for kind in names.split(", ")
                for condition in types.split(", ")
            ]
        yield from ((kind, place, reason) for kind, place in places for reason in reasons.split(", "))


def test_every_reason_has_a_row() -> None:
    described = {(kind, reason) for kind, _, reason in rows()}
    listed = {
        (kind.kind, reason)
        for kind in kinds.ALL
        for condition in kind.conditions.values()
        for reason in condition.reasons
    }
    missing = sorted(pair for pair in listed - described if pair[1] not in NOTHING_TO_DO)
    assert not missing, f"docs/operations.md, Troubleshooting by condition: add rows for {missing}"


def test_every_row_is_about_a_reason() -> None:
    known = {
        (kind.kind, condition, reason)
        for kind in kinds.ALL
        for condition in kind.conditions
        for reason in kind.reasons(condition)
    }
    types = {(kind.kind, condition) for kind in kinds.ALL for condition in kind.conditions}
    words = {word for row in rows() for word in row[:2]}
    unknown = sorted(words - {word for pair in types for word in pair})
    assert not unknown, f"docs/operations.md has rows for {unknown}, which are neither kinds nor conditions"
    stale = sorted(row for row in rows() if row[:2] in types and row not in known)
    assert not stale, f"docs/operations.md has rows for {stale}, which no kind in crds/kinds lists"
    assert not NOTHING_TO_DO - {reason for *_, reason in known}
