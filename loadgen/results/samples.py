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
    """Or what else is compared with mode baseline, as `loadgen.plan.CONTROL`."""
    session_length: int
    """In queries; 0 for one session per user and slice, -1 for sessions that only log in."""
    mispredicted: float
    """The share of sessions that connect from another region than their user's home; the same in a whole run."""
    seed: int
    queries: int
    sessions: int
    failures: int
    seconds: float
    cpu_seconds: float
    """User and system time of every process of the pipeline, its supervisors, the monitor and the key-value store."""
    driver_cpu_seconds: float
    """CPU time of the load generator; near ``seconds``, it was the bottleneck."""
    latency_p50_ms: float
    latency_p90_ms: float
    latency_p99_ms: float
    login_p50_ms: float
    login_p90_ms: float
    login_p99_ms: float
    interceptions: dict[str, int] = field(default_factory=dict)
    """The monitor's interceptions for the pipeline, by kind."""
    process_cpu_seconds: dict[str, float] = field(default_factory=dict)
    """``cpu_seconds`` by process: each task with its workers, supervisor, monitor, store."""
    people: str = ""
    """Whose sessions these are: users whose names begin with this."""
    violations: int = 0
    """Documents that were shown and must not be."""
    latency_counts: dict[str, int] = field(default_factory=dict)
    """Searches by the upper bound in milliseconds of the interval in which their latency is."""

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
        row.update({name: json.dumps(value, sort_keys=True) for name, value in row.items() if isinstance(value, dict)})
        with self._path.open("a", newline="") as file:
            csv.DictWriter(file, self._names).writerow(row)


def plain(sample: Sample) -> dict[str, Any]:
    """Return a slice as JSON, without its latencies: `loadgen.results.summary` adds up those of all slices."""
    found = asdict(sample)
    del found["latency_counts"]
    return found


def read(path: Path) -> list[Sample]:
    """Read a file of SampleFile."""
    with path.open(newline="") as file:
        return [_parse(row) for row in csv.DictReader(file)]


def _parse(row: dict[str, str]) -> Sample:
    values: dict[str, Any] = {}
    for entry in fields(Sample):
        text = row[entry.name]
        if str(entry.type).startswith("dict"):
            values[entry.name] = json.loads(text)
        else:
            values[entry.name] = {"int": int, "float": float, "str": str}[str(entry.type)](text)
    return Sample(**values)


def of(samples: Iterable[Sample], mode: str, session_length: int, people: str = "") -> list[Sample]:
    """Return the samples of one mode and session length, in the order of their rounds."""
    chosen = (s for s in samples if (s.mode, s.session_length, s.people) == (mode, session_length, people))
    return sorted(chosen, key=lambda sample: sample.round)
