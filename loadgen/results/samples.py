# SPDX-License-Identifier: BSD-2-Clause
"""The raw samples: one row per slice, written as soon as the slice is measured."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """One slice: its parameters, its load and the costs of the system under test."""

    round: int
    order: int
    """Position in the whole run, counted from 0."""
    mode: str
    session_length: int
    """In queries; 0 for one session per user and slice."""
    mispredicted: float
    seed: int
    queries: int
    sessions: int
    failures: int
    seconds: float
    cpu_seconds: float
    """User and system time of every process of the pipeline, the monitor and the key-value store."""
    driver_cpu_seconds: float
    """CPU time of the load generator; near ``seconds``, it was the bottleneck."""
    latency_p50_ms: float
    latency_p90_ms: float
    latency_p99_ms: float
    interceptions: dict[str, int] = field(default_factory=dict)
    """The monitor's interceptions for the pipeline, by kind."""

    @property
    def queries_per_second(self) -> float:
        """Throughput of the slice."""
        return self.queries / self.seconds

    @property
    def cpu_micros_per_query(self) -> float:
        """CPU time of the whole slice, divided by its queries, in microseconds."""
        return self.cpu_seconds * 1e6 / self.queries

    @property
    def cpu_micros_per_session(self) -> float:
        """CPU time of the whole slice, divided by its sessions, in microseconds."""
        return self.cpu_seconds * 1e6 / self.sessions


class SampleFile:
    """samples.csv, opened for each row, so that an interrupted run keeps its rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = [entry.name for entry in fields(Sample)]
        with path.open("w", newline="") as file:
            csv.writer(file).writerow(self._names)

    def append(self, sample: Sample) -> None:
        """Write one row."""
        row: dict[str, Any] = asdict(sample)
        row["interceptions"] = json.dumps(sample.interceptions, sort_keys=True)
        with self._path.open("a", newline="") as file:
            csv.DictWriter(file, self._names).writerow(row)


def read(path: Path) -> list[Sample]:
    """Read a file of SampleFile."""
    with path.open(newline="") as file:
        return [_parse(row) for row in csv.DictReader(file)]


def _parse(row: dict[str, str]) -> Sample:
    values: dict[str, Any] = {}
    for entry in fields(Sample):
        text = row[entry.name]
        if entry.name == "interceptions":
            values[entry.name] = json.loads(text)
        else:
            values[entry.name] = {"int": int, "float": float, "str": str}[str(entry.type)](text)
    return Sample(**values)


def of(samples: Iterable[Sample], mode: str, session_length: int) -> list[Sample]:
    """Return the samples of one mode and session length, in the order of their rounds."""
    chosen = (s for s in samples if s.mode == mode and s.session_length == session_length and s.mispredicted == 0)
    return sorted(chosen, key=lambda sample: sample.round)
