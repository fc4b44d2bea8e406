# SPDX-License-Identifier: BSD-2-Clause
"""One table of labels and colours: boards, report and pages show the same thing in the same colour.

Every colour can be told from a white and from a dark background alike, so there is one value for both themes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """How a value of a label is shown."""

    text: str
    """What a legend calls it."""
    colour: str
    """#rrggbb."""


GREY, BLUE, AMBER, BROWN = "#7c7f86", "#2a7cd8", "#c27800", "#a35f3c"
TEAL, VIOLET, MAGENTA, GREEN, RED = "#17868a", "#9062c8", "#c2408f", "#2d8a46", "#d33f3f"

MODES = {
    "baseline": Colour("baseline", GREY),
    "control": Colour("control", TEAL),
    "dynamic": Colour("dynamic", AMBER),
    "dynamic-lazy": Colour("dynamic-lazy", BROWN),
    "audit": Colour("audit", VIOLET),
    "shai": Colour("shai", BLUE),
    "paper": Colour("paper", MAGENTA),
}
"""Modes of enforcement; control is a second installation in mode baseline, paper the published figure."""

PATHS = {
    "native": Colour("native", BLUE),
    "supervisor": Colour("supervisor", AMBER),
    "monitor": Colour("monitor", RED),
    "task": Colour("task", GREY),
}
"""Who answers an access, and whose CPU time it is."""

OUTCOMES = {
    "allowed": Colour("allowed", BLUE),
    "granted": Colour("granted", BLUE),
    "refused": Colour("refused", RED),
    "undecided": Colour("undecided", AMBER),
    "would be refused": Colour("would be refused", VIOLET),
    "analyzed": Colour("analyzed", BLUE),
    "mispredicted": Colour("mispredicted", AMBER),
    "succeeded": Colour("succeeded", GREEN),
    "completed": Colour("completed", GREEN),
    "failed": Colour("failed", RED),
    "rolled_back": Colour("rolled back", AMBER),
    "cancelled": Colour("cancelled", GREY),
}
"""How a decision, an analysis or a rollout ended."""

TRACKS = {"stable": Colour("stable", GREY), "canary": Colour("canary", AMBER)}
"""Parts of a pool during a rollout."""

LEVELS = {"good": GREEN, "warning": AMBER, "bad": RED, "neutral": BLUE}
"""What a threshold means."""

TABLES = {"modes": MODES, "paths": PATHS, "outcomes": OUTCOMES, "tracks": TRACKS}


def table() -> dict[str, object]:
    """Return the table as JSON has it, for pages."""
    shown = {
        name: {value: {"text": colour.text, "colour": colour.colour} for value, colour in colours.items()}
        for name, colours in TABLES.items()
    }
    return shown | {"levels": LEVELS}
