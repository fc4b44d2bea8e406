# SPDX-License-Identifier: BSD-2-Clause
"""From samples to results.json: the costs of each mode at each session length."""

from __future__ import annotations

import json
import math
import os
import platform
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.plan import BASELINE, CONTROL
from loadgen.results import estimates, samples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadgen.plan import Plan
    from loadgen.results.estimates import Estimate
    from loadgen.results.samples import Sample

FORMAT = 4

PER_SESSION = ("register", "accept", "authenticate", "reset")
"""Kinds of interceptions that belong to a session; every other kind belongs to its queries."""


def summarise(
    plan: Plan, dataset: Mapping[str, Any], measured: Sequence[Sample], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return everything that the tables show, as plain JSON values.

    ``dataset`` is the data's size, as `loadgen.datasets.corpus.describe` returns it. ``notes`` say what the measurement
    could not do.
    """
    seed = plan.seed
    return {
        "format": FORMAT,
        "size": {**dataset, **asdict(plan)},
        "seed": seed,
        "machine": machine(),
        "scenario": plan.scenario,
        "notes": list(notes),
        "throughput": [
            {"sessionLength": length, **{mode: _mode(measured, mode, length, seed) for mode in plan.series}}
            for length in plan.session_lengths
        ],
        "addedPerSession": {
            mode: _added_per_session(measured, mode, seed)
            for mode in (*plan.enforcing, CONTROL)
            if _tells_sessions_apart(plan)
        },
        "latency": [
            {"mode": mode, "sessionLength": length, **distribution}
            for length in plan.session_lengths
            for mode, distribution in _distributions(measured, plan.series, length).items()
        ],
        "samples": [samples.plain(sample) for sample in measured],
        "interceptions": {mode: _interceptions(measured, mode, plan.session_lengths) for mode in plan.modes},
    }


def machine() -> dict[str, Any]:
    """Describe the machine of a run."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    kilobytes = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": model,
        "cores": os.cpu_count(),
        "memoryMegabytes": kilobytes // 1024,
        "python": platform.python_version(),
    }


def write(path: Path, results: dict[str, Any]) -> None:
    """Replace results.json atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=2, allow_nan=False) + "\n")
    temporary.replace(path)


def _mode(measured: Sequence[Sample], mode: str, length: int, seed: int) -> dict[str, Any]:
    own = samples.of(measured, mode, length)
    base = samples.of(measured, BASELINE, length)

    def compare(
        how: Callable[[Sequence[float], Sequence[float], int], Estimate], figure: Callable[[Sample], float]
    ) -> dict[str, Any]:
        return _plain(how([figure(sample) for sample in own], [figure(sample) for sample in base], seed))

    def typical(figure: Callable[[Sample], float]) -> dict[str, Any]:
        return _plain(estimates.median([figure(sample) for sample in own], seed))

    figures: dict[str, Any] = {
        "queries": sum(sample.queries for sample in own),
        "sessions": sum(sample.sessions for sample in own),
        "queriesPerSecond": typical(lambda sample: sample.queries_per_second),
        "cpuMicrosPerQuery": typical(lambda sample: sample.cpu_micros_per_query),
        "cpuMicrosPerSession": typical(lambda sample: sample.cpu_micros_per_session),
        "latencyMilliseconds": {
            "p50": typical(lambda sample: sample.latency_p50_ms),
            "p90": typical(lambda sample: sample.latency_p90_ms),
            "p99": typical(lambda sample: sample.latency_p99_ms),
        },
        "driverShare": round(max(sample.driver_cpu_seconds / sample.seconds for sample in own), 3),
    }
    if mode != BASELINE:
        figures["overhead"] = compare(estimates.overhead, lambda sample: sample.queries_per_second)
        figures["cpuOverhead"] = compare(estimates.increase, lambda sample: sample.cpu_micros_per_query)
        figures["addedCpuMicrosPerQuery"] = compare(estimates.difference, lambda sample: sample.cpu_micros_per_query)
    return figures


def _distributions(measured: Sequence[Sample], series: Sequence[str], length: int) -> dict[str, dict[str, Any]]:
    """Return by mode how many searches took up to each bound and more than the bound before.

    All modes have the same bounds, so that they can be compared; none took more than the last.
    """
    counts = {mode: Counter[float]() for mode in series}
    for mode, counted in counts.items():
        for sample in samples.of(measured, mode, length):
            counted.update({float(bound): count for bound, count in sample.latency_counts.items()})
    bounds = sorted(set().union(*counts.values()))
    return {
        mode: {"boundsMilliseconds": bounds, "counts": [*(counted[bound] for bound in bounds), 0]}
        for mode, counted in counts.items()
    }


def _tells_sessions_apart(plan: Plan) -> bool:
    """Whether sessions of different lengths were measured, at least one of them limited."""
    return len(plan.session_lengths) > 1 and max(plan.session_lengths) > 0


def _added_per_session(measured: Sequence[Sample], mode: str, seed: int) -> dict[str, Any]:
    """Return the CPU time that enforcement adds to a session itself, from the shortest sessions.

    The added time of each query, from the same round's longest sessions, is subtracted.
    """
    lengths = {sample.session_length for sample in measured}
    shortest, longest = min(lengths - {0}), 0 if 0 in lengths else max(lengths)

    def added(length: int, figure: Callable[[Sample], float]) -> list[float]:
        pairs = zip(samples.of(measured, mode, length), samples.of(measured, BASELINE, length), strict=True)
        return [figure(own) - figure(base) for own, base in pairs]

    sessions = added(shortest, lambda sample: sample.cpu_micros_per_session)
    queries = added(longest, lambda sample: sample.cpu_micros_per_query)
    return _plain(
        estimates.difference(sessions, [shortest * query for query in queries], seed),
    )


def _interceptions(measured: Sequence[Sample], mode: str, lengths: Sequence[int]) -> dict[str, Any]:
    own = [sample for length in lengths for sample in samples.of(measured, mode, length)]
    kinds: dict[str, int] = {}
    for sample in own:
        for kind, count in sample.interceptions.items():
            kinds[kind] = kinds.get(kind, 0) + count
    session = sum(count for kind, count in kinds.items() if kind in PER_SESSION)
    query = sum(count for kind, count in kinds.items() if kind not in PER_SESSION)
    return {
        "perSession": round(session / sum(sample.sessions for sample in own), 4),
        "perQuery": round(query / sum(sample.queries for sample in own), 4),
        "byKind": kinds,
    }


def _plain(estimate: Estimate) -> dict[str, Any]:
    """Convert an estimate to JSON; an unbounded interval (one round) is null."""
    low, high = (value if math.isfinite(value) else None for value in (estimate.low, estimate.high))
    return {
        "estimate": estimate.value,
        "low": low,
        "high": high,
        "belowNoise": estimate.below_noise,
        "imprecise": estimate.imprecise,
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
