# SPDX-License-Identifier: BSD-2-Clause
"""The table for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testing.analysing.points import Measurement

_STEPS = ("facts", "register", "indexer and search", "analysis", "store", "report", "open")


def summary(found: Sequence[Measurement]) -> str:
    """Return what was measured as tables."""
    parts = [_steps(found), _whole(found)]
    slopes = {name: slope(found, name) for name in ("register", "analysis")}
    parts += [
        f"slope of {name}: {value:.2f} (1: each user costs the same, however many there are)"
        for name, value in slopes.items()
        if value is not None
    ]
    return "\n\n".join(parts)


def slope(found: Sequence[Measurement], step: str) -> float | None:
    """Return the exponent with which a step's CPU time grows with the users: least squares of the logarithms."""
    points = [
        (math.log(one.users), math.log(one.phases[step].cpu_seconds))
        for one in found
        if one.is_plain and one.phases[step].cpu_seconds > 0
    ]
    if len({users for users, _ in points}) <= 1:
        return None
    x, y = (sum(point[axis] for point in points) / len(points) for axis in (0, 1))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _name(one: Measurement) -> str:
    notes = [f"{one.processors} processors"] if one.processors > 1 else []
    notes += ["files"] if one.files else []
    return f"{one.users:,} / {one.documents:,}" + (f" ({', '.join(notes)})" if notes else "")


def _steps(found: Sequence[Measurement]) -> str:
    lines = ["CPU seconds of each step, on one processor unless it says otherwise", _row("users / documents", _STEPS)]
    lines += [_row(_name(one), [f"{one.phases[step].cpu_seconds:.2f}" for step in _STEPS]) for one in found]
    return "\n".join(lines)


def _whole(found: Sequence[Measurement]) -> str:
    heads = ("classes", "wall s", "peak MB", "anonymous MB", "bytes/user", "µs/user", "naive µs/user", "load")
    lines = ["Registered and analysed (facts, register, analysis)", _row("users / documents", heads)]
    for one in found:
        wall = sum(one.phases[step].wall_seconds for step in ("facts", "register", "analysis"))
        peak, anonymous = one.peak
        cells = [
            f"{one.classes:,}", f"{wall:.1f}", f"{peak >> 20:,}", f"{anonymous >> 20:,}", f"{one.bytes_per_user:,}",
            f"{one.joined_per_user * 1e6:,.0f}", f"{one.naive_per_user * 1e6:,.0f}", str(one.raw.get("load", "?")),
        ]  # fmt: skip
        lines.append(_row(_name(one), cells))
    return "\n".join(lines)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:36}" + "".join(f"{cell:>{max(len(cell), 12) + 2}}" for cell in cells)
