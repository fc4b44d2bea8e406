# SPDX-License-Identifier: BSD-2-Clause
"""Types of condition: what each means, and the reasons that it has."""

from __future__ import annotations

from dataclasses import dataclass

ROLLOUT_REASONS = ("Progressing", "Paused", "Inconclusive", "BlocksFlows", "TooLarge")


@dataclass(frozen=True)
class Condition:
    """A type of condition in a status. The operator's tests fail if it writes a reason that is not listed here."""

    about: str
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Reasons of its own, by its status."""
    others: tuple[str, ...] = ()
    """Types of the same kind whose reasons it has, too."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Its own reasons."""
        return (*self.true, *self.false, *self.unknown)

    def __str__(self) -> str:
        """Describe it, for the definition and the reference page."""
        listed = {"Unknown": self.unknown, "True": self.true, "False": self.false}
        parts = [f"{status}: {', '.join(reasons)}." for status, reasons in listed.items() if reasons]
        if self.others:
            parts.append(f"Also the reasons of {' and '.join(self.others)}.")
        return " ".join([self.about, *parts])


def validity(about: str) -> Condition:
    """Describe whether an object is valid."""
    return Condition(about, true=("Accepted",), false=("Invalid",), unknown=("Checking",))


def rolled_out(about: str) -> Condition:
    """Describe the condition RolledOut of what a rollout changes."""
    return Condition(about, true=("Complete",), false=(*ROLLOUT_REASONS, "RolledBack"), unknown=("Pending",))


def run(*, false: tuple[str, ...] = (), unknown: tuple[str, ...] = ()) -> Condition:
    """Describe the condition Succeeded of what runs once; the arguments are the kind's own reasons."""
    return Condition(
        "Whether it completed successfully.",
        true=("Complete",),
        false=("Failed", "Cancelled", "TimedOut", *false),
        unknown=("Pending", "Running", *unknown),
    )
