# SPDX-License-Identifier: BSD-2-Clause
"""The sizes that are measured, and what was measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Point:
    """One size."""

    users: int
    documents: int
    processors: int = 1
    files: bool = False
    """Make a file for each document, and the view of links. Otherwise a listing names the documents."""

    def __str__(self) -> str:
        """Return it for people."""
        files = ", a file for each" if self.files else ""
        return f"{self.users:,} users, {self.documents:,} documents{files}, on {self.processors} processors"


_PER_USER = 25
_ALL = os.cpu_count() or 1

GRIDS = {
    "quick": [Point(users, users * _PER_USER) for users in (500, 1000, 2000)]
    + [Point(500, 500 * _PER_USER, files=True)],
    "half": [Point(users, users * _PER_USER) for users in (2500, 5000, 10000)],
    "full": [
        *(Point(users, users * _PER_USER) for users in (2500, 5000, 10000, 20000, 40000)),
        Point(40000, 14_500_000),
        Point(40000, 40000 * _PER_USER, files=True),
        Point(40000, 40000 * _PER_USER, processors=_ALL),
    ],
}


@dataclass(frozen=True)
class Phase:
    """What one step cost."""

    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    """Resident memory at most, with the pages of mapped files, which the kernel may drop."""
    peak_anonymous_bytes: int
    """Without them."""


@dataclass(frozen=True)
class Measurement:
    """What the steps of one size cost."""

    raw: dict[str, Any]
    users: int
    documents: int
    classes: int
    processors: int
    files: bool
    bytes_per_user: int
    naive_per_user: float
    """CPU seconds in which every class is tried for one user."""
    joined_per_user: float
    phases: dict[str, Phase]

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Measurement:
        """Read the result of the Go benchmark."""
        phases = {
            one["name"]: Phase(one["cpu_seconds"], one["wall_seconds"], one["peak_bytes"], one["peak_anonymous_bytes"])
            for one in raw["phases"]
        }
        kept = (
            "users", "documents", "classes", "processors", "files", "bytes_per_user", "naive_per_user",
            "joined_per_user",
        )  # fmt: skip
        return cls(raw=raw, phases=phases, **{name: raw[name] for name in kept})

    @property
    def point(self) -> Point:
        """The size that was asked for: how many documents there are in the end may differ."""
        return Point(**self.raw["asked"])

    @property
    def peak(self) -> tuple[int, int]:
        """The most resident and anonymous memory of all steps, in bytes."""
        return (
            max(one.peak_bytes for one in self.phases.values()),
            max(one.peak_anonymous_bytes for one in self.phases.values()),
        )

    @property
    def is_plain(self) -> bool:
        """Whether it belongs to the row of sizes that differ in nothing else."""
        return self.processors == 1 and not self.files and self.documents <= self.users * _PER_USER
