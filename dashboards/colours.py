# SPDX-License-Identifier: BSD-2-Clause
"""The colours of what is shown: dashboards, report and pages show the same thing in the same colour.

Pages have the colours of monitor/internal/look/colours.json, which is generated from this table.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Colour:
    """A colour on a light and on a dark ground, as #rrggbb."""

    light: str
    dark: str

    @property
    def either(self) -> str:
        """A colour for both grounds, between the two: Grafana has one colour for all its themes."""
        parts = zip(bytes.fromhex(self.light[1:]), bytes.fromhex(self.dark[1:]), strict=True)
        return "#" + bytes((3 * light + 2 * dark) // 5 for light, dark in parts).hex()


_GREY = Colour("#6a7080", "#9aa3b5")
_BLUE, _GREEN, _RED, _AMBER = (
    Colour("#1f62b8", "#6fb1ff"), Colour("#24734a", "#6fcf97"), Colour("#b3261e", "#ff8a7a"),
    Colour("#b56a00", "#f0a63a"),
)  # fmt: skip
_BROWN, _PLUM, _OLIVE, _TEAL = (
    Colour("#a0522d", "#d98a5f"), Colour("#76306e", "#d08cc8"), Colour("#557a2b", "#a3c76d"),
    Colour("#17706e", "#5fc4bf"),
)  # fmt: skip
_VIOLET, _SAND, _PINK = (
    Colour("#5a3fb0", "#b09cf5"), Colour("#8c6d1f", "#d8b757"), Colour("#c2287f", "#ff86c3"),
)  # fmt: skip

TABLE = {
    # Modes; control is a second installation in mode baseline, beside mode shai of another version, paper what was
    # published, by-hand load that no Benchmark makes.
    "modes": {
        "baseline": _GREY,
        "control": _SAND,
        "dynamic": _AMBER,
        "dynamic-lazy": _BROWN,
        "shai": _BLUE,
        "beside": _GREEN,
        "audit": _PLUM,
        "forked": _OLIVE,
        "process": _TEAL,
        "paper": _VIOLET,
        "by-hand": _PINK,
    },
    # How a decision, an analysis, a session or a rollout ended.
    "results": {
        "allowed": _GREEN,
        "refused": _RED,
        "would-refuse": _AMBER,
        "granted": _GREEN,
        "undecided": _SAND,
        "analyzed": _GREEN,
        "mispredicted": _SAND,
        "succeeded": _GREEN,
        "completed": _GREEN,
        "failed": _RED,
        "rolled-back": _AMBER,
        "cancelled": _GREY,
    },
    # Who works on something, and who answers an open: native is the kernel alone.
    "parts": {
        "monitor": _BLUE,
        "supervisor": _VIOLET,
        "worker": _TEAL,
        "search": _SAND,
        "store": _BROWN,
        "task": _GREY,
        "native": _OLIVE,
    },
    # Parts of a pool during a rollout.
    "tracks": {"stable": _GREY, "canary": _AMBER},
    # What a number means, by a panel's limits.
    "levels": {"good": _GREEN, "warning": _AMBER, "bad": _RED, "neutral": _BLUE},
}


def as_json() -> dict[str, dict[str, dict[str, str]]]:
    """Return the table as pages read it."""
    return {group: {name: asdict(colour) for name, colour in colours.items()} for group, colours in TABLE.items()}
