# SPDX-License-Identifier: BSD-2-Clause
"""Types of conditions, with their meanings and reasons."""

from __future__ import annotations

from dataclasses import dataclass

HOLDING_REASONS = ("Paused", "Inconclusive", "BlocksFlows", "TooLarge")
"""Reasons why a rollout that has begun goes no further."""


@dataclass(frozen=True)
class Condition:
    """A type of condition in a status. The operator's tests fail if it writes a reason that is not listed here."""

    about: str
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """The type's own reasons, by status."""
    others: tuple[str, ...] = ()
    """Types of the same kind whose reasons this type also uses."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The type's own reasons."""
        return (*self.true, *self.false, *self.unknown)

    def __str__(self) -> str:
        """Return the description for the definition and the reference page."""
        listed = {"Unknown": self.unknown, "True": self.true, "False": self.false}
        parts = [f"{status}: {', '.join(reasons)}." for status, reasons in listed.items() if reasons]
        if self.others:
            parts.append(f"Also the reasons of {' and '.join(self.others)}.")
        return " ".join([self.about, *parts])


def validity(about: str, *false: str) -> Condition:
    """Return the condition that says whether an object is valid; ``false`` are the kind's own reasons why it is not."""
    return Condition(about, true=("Accepted",), false=("Invalid", *false), unknown=("Checking",))


def rolled_out(about: str) -> Condition:
    """Return the condition RolledOut of a kind whose changes are rolled out."""
    return Condition(
        about,
        true=("Complete",),
        false=("Progressing", *HOLDING_REASONS, "RolledBack"),
        unknown=("Pending",),
    )


def run(*, false: tuple[str, ...] = (), unknown: tuple[str, ...] = ()) -> Condition:
    """Return the condition Succeeded of a kind that runs once; the arguments are the kind's own reasons."""
    return Condition(
        "Whether it completed successfully.",
        true=("Complete",),
        false=("Failed", "Cancelled", "TimedOut", *false),
        unknown=("Pending", "Running", *unknown),
    )
