# SPDX-License-Identifier: BSD-2-Clause
"""Counts the rollouts of pools that have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.metrics.samples import COMPLETED, ROLLED_BACK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class EndedRollouts:
    """The rollouts of one share of a pool that ended while this process observed it.

    They are counted from the pool's status, not from decisions: a decision whose status was not written is made again.
    """

    def __init__(self) -> None:
        self.counts = {COMPLETED: 0, ROLLED_BACK: 0}
        self._last: dict[str, str] | None = None

    def note(self, entry: Mapping[str, Any]) -> None:
        """Take what the pool's status has of the share at present."""
        releases = {
            COMPLETED: str(entry.get("stableRelease") or ""),
            ROLLED_BACK: str(entry.get("rejectedRelease") or ""),
        }
        for result, release in releases.items():
            if self._last is not None and release not in ("", self._last[result]):
                self.counts[result] += 1
        self._last = releases
