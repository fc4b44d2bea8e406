# SPDX-License-Identifier: BSD-2-Clause
"""What a run of a scenario has shown: as a table for people, as JSON and CSV for programs."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.scenarios.definitions import Scenario
    from loadgen.scenarios.recording import Part
    from loadgen.thresholds import Judgement, Threshold

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

WHOLE = "whole run"
_TRIAL = ".trial"
_ERRORS = 20
"""How many different errors are kept: a service can answer each search with another one."""
_COLUMNS = {
    "seconds": "seconds",
    "queries": "queries",
    "queries_per_second": "queries/s",
    "p50": "p50 ms",
    "p90": "p90 ms",
    "p99": "p99 ms",
    "sessions_per_second": "logins/s",
    "failures": "failed",
    "shown": "shown",
    "withheld": "withheld",
}
_COUNTS = ("queries", "failures", "shown", "withheld")


class ResultsError(LoadgenError):
    """Results cannot be written; the text says where and why."""


class Status(IntEnum):
    """The exit status of a run."""

    WITHIN = 0
    FAILED = 1
    EXCEEDED = 3
    INTERRUPTED = 130


@dataclass(frozen=True)
class Setting:
    """What got the load, and how much."""

    host: str
    pipeline: str
    users: int
    """The greatest number at the same time."""
    seconds: float
    """How long the load was to take."""
    workers: int
    """Processes that made the load."""
    seed: int


@dataclass(frozen=True)
class Outcome:
    """A run that has ended."""

    scenario: Scenario
    setting: Setting
    parts: Sequence[Part]
    errors: Mapping[str, int]
    """What failed, and how often."""
    judgements: Sequence[Judgement]
    complete: bool
    """Whether the load ran to its end."""
    lost: int = 0
    """Processes that have ended before the load did, with their last counts."""
    late: int = 0
    """Processes that had not told their last counts when they were given up."""

    @property
    def unjudged(self) -> str:
        """Why thresholds are not judged; empty if they are."""
        processes, of = self.setting.workers, "thresholds are not judged."
        if self.lost:
            return f"{self.lost} of {processes} processes ended early: {of}"
        if self.late:
            return f"{self.late} of {processes} processes had not told what they counted when it was given up: {of}"
        return "" if self.complete else f"The run was cut off: {of}"

    @property
    def status(self) -> Status:
        """The exit status. Thresholds say nothing of a run that was cut off, or whose counts are not complete."""
        if self.unjudged:
            return Status.FAILED if self.lost or self.late else Status.INTERRUPTED
        return Status.EXCEEDED if any(judged.exceeded for judged in self.judgements) else Status.WITHIN

    def plain(self) -> dict[str, Any]:
        """Return it as plain data; what was not measured is None."""
        return {
            "scenario": self.scenario.name,
            "description": self.scenario.description,
            "question": self.scenario.question,
            **asdict(self.setting),
            "complete": not self.unjudged,
            "parts": [{"phase": part.phase, **_numbers(part)} for part in self.parts],
            "errors": dict(self.errors),
            "thresholds": [
                {"threshold": str(judged.threshold), "exceeded": judged.exceeded, "message": judged.message}
                for judged in self.judgements
            ],
        }

    def table(self) -> str:
        """Return the table, the errors and the judgements for people."""
        setting = self.setting
        lines = [
            f"{self.scenario.name}: {self.scenario.description}",
            line(
                f"on {setting.host}, pipeline {setting.pipeline}, up to {setting.users} users, {setting.seconds:.0f} s"
            ),
            "",
            *_aligned([["", *_COLUMNS.values()], *map(_cells, self.parts)]),
        ]
        whole = self.parts[-1].values
        if whole["revoked"]:
            lines += ["", f"{whole['revoked']:,.0f} searches ended with their session, as they had to."]
        if whole["checked"]:
            lines += ["", f"{whole['checked']:,.0f} searches by former friends were looked through."]
        if self.errors:
            lines += ["", *(f"{count} times {line(error)}" for error, count in self.errors.items())]
        if self.judgements and not self.unjudged:
            words = {True: "exceeded", False: "within"}
            lines += ["", *(f"{words[judged.exceeded]:8}  {judged.message}" for judged in self.judgements)]
        if self.unjudged:
            lines += ["", self.unjudged]
        return "\n".join(lines)


def judge(thresholds: Sequence[Threshold], parts: Sequence[Part]) -> list[Judgement]:
    """Judge a run by thresholds."""
    rows = [part.row for part in parts]
    return [threshold.judge(rows) for threshold in thresholds]


def frequent(errors: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent errors, and how often there were others, in the same form."""
    ordered = sorted(errors.items(), key=lambda one: -one[1])
    others = ordered[_ERRORS:]
    more = {f"one of {len(others):,} other errors": sum(count for _, count in others)} if others else {}
    return dict(ordered[:_ERRORS]) | more


def prepare(directory: Path) -> None:
    """Make a directory for results; ResultsError when none can be written there: a long run would be in vain."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _opened(directory) as folder:
            _replace(folder, _TRIAL, "")
            os.unlink(_TRIAL, dir_fd=folder)
    except OSError as error:
        raise ResultsError(f"cannot write results to {directory}: {error.strerror}") from error


def write(outcome: Outcome, directory: Path) -> None:
    """Write result.json, parts.csv and table.txt; what is there is replaced, and no link is followed."""
    directory.mkdir(parents=True, exist_ok=True)
    found = outcome.plain()
    text = io.StringIO()
    writer = csv.DictWriter(text, found["parts"][0])
    writer.writeheader()
    writer.writerows(found["parts"])
    with _opened(directory) as folder:
        _replace(folder, "result.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        _replace(folder, "parts.csv", text.getvalue())
        _replace(folder, "table.txt", outcome.table() + "\n")


def write_statistics(statistics: Sequence[Mapping[str, Any]], directory: Path) -> None:
    """Write locust.json, with what Locust has counted itself, as `write` does."""
    with _opened(directory) as folder:
        _replace(folder, "locust.json", json.dumps(statistics, indent=2) + "\n")


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    folder = os.open(directory, _DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _replace(folder: int, name: str, content: str) -> None:
    temporary = f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    with os.fdopen(os.open(temporary, _CREATE, 0o644, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(content)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _numbers(part: Part) -> dict[str, float | None]:
    found = {"seconds": part.seconds, **part.values}
    return {name: None if math.isnan(value) else round(value, 6) for name, value in found.items()}


def _cells(part: Part) -> list[str]:
    found = {"seconds": part.seconds, **part.values}
    return [part.phase or WHOLE, *(_cell(name, found[name]) for name in _COLUMNS)]


def _cell(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    if name in _COUNTS:
        return f"{value:,.0f}"
    return f"{value * 1000:.2f}" if name.startswith("p") else f"{value:,.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def line(text: str) -> str:
    """Return a text as one line without control characters: an error may hold what a server sent."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
