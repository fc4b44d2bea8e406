# SPDX-License-Identifier: BSD-2-Clause
"""Keeps what was counted in each phase of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.driving.metrics import FAILED, OK, REVOKED, Series
from loadgen.thresholds import Row

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Part:
    """A phase of a run, or the whole run, whose name is empty."""

    phase: str
    seconds: float
    counted: Series

    @property
    def values(self) -> dict[str, float]:
        """The quantities of thresholds, and the counts that they are made of, in seconds, ratios and numbers."""
        counted = self.counted
        failed = counted.queries[FAILED] + counted.sessions[FAILED] + counted.violations
        answered = counted.queries[OK] + counted.sessions[OK]
        times = {"": counted.query_times, "login_": counted.login_times}
        return {
            "queries": counted.queries[OK],
            "revoked": counted.queries[REVOKED],
            "sessions": counted.sessions[OK],
            "shown": counted.shown,
            "withheld": counted.withheld,
            "violations": counted.violations,
            "checked": counted.checked,
            "failures": failed if answered + failed else float("nan"),
            "failure_ratio": failed / (answered + failed) if answered + failed else float("nan"),
            "queries_per_second": counted.queries[OK] / self.seconds if self.seconds else float("nan"),
            "sessions_per_second": counted.sessions[OK] / self.seconds if self.seconds else float("nan"),
            **{
                f"{prefix}p{share}": found.percentile(share / 100)
                for prefix, found in times.items()
                for share in (50, 90, 99)
            },
        }

    @property
    def row(self) -> Row:
        """The part as thresholds see it."""
        return Row({"phase": self.phase} if self.phase else {}, self.values)


class Recording:
    """One run. ``counted`` is a series that goes on counting, and may have counted before."""

    def __init__(self, counted: Series, clock: Callable[[], float] = time.monotonic) -> None:
        self._counted = counted
        self._clock = clock
        self._marks = [("", clock(), _copy(counted))]
        self._ended: float | None = None

    @property
    def phase(self) -> str:
        """The present phase; empty before the first one."""
        return self._marks[-1][0]

    def enter(self, phase: str) -> None:
        """Note that a phase begins, which ends the one before."""
        if phase != self.phase:
            self._marks.append((phase, self._clock(), _copy(self._counted)))

    def end(self) -> None:
        """Note that the load ends. What is answered from now on still counts in the last phase and in the whole run."""
        self._ended = self._ended or self._clock()

    def parts(self) -> list[Part]:
        """Return the phases in their order, and the whole run as the last part."""
        now = self._ended or self._clock()
        ends = [*self._marks[1:], ("", now, _copy(self._counted))]
        parts = [
            Part(phase, then - start, after.since(before))
            for (phase, start, before), (_, then, after) in zip(self._marks, ends, strict=True)
            if phase
        ]
        _, start, before = self._marks[0]
        return [*parts, Part("", now - start, self._counted.since(before))]


def _copy(counted: Series) -> Series:
    return counted.since(Series())
