# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of Benchmarks: the figures of the overhead table, as exact as the load generator reported them."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shai_operator.metrics.samples import Sample
from shai_operator.reconcile import conditions, runs
from shai_operator.reconcile.conditions import TRUE
from shai_operator.reconcile.objects import created, name, namespace, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shai_operator.metrics.samples import Snapshot
    from shai_operator.reconcile.objects import Object

_VALUES = {
    "queriesPerSecond": "shai_benchmark_queries_per_second",
    "cpuSecondsPerQuery": "shai_benchmark_cpu_seconds_per_query",
    "cpuSecondsPerSession": "shai_benchmark_cpu_seconds_per_session",
    "interceptionsPerSession": "shai_benchmark_interceptions_per_session",
    "paperThroughputOverheadRatio": "shai_benchmark_paper_throughput_overhead_ratio",
}
"""Figures of which only the value is exported."""
_INTERVALS = {
    "cpuAddedSecondsPerQuery": "shai_benchmark_cpu_added_seconds_per_query",
    "cpuAddedSecondsPerSession": "shai_benchmark_cpu_added_seconds_per_session",
    "cpuOverheadRatio": "shai_benchmark_cpu_overhead_ratio",
    "throughputOverheadRatio": "shai_benchmark_throughput_overhead_ratio",
}
"""Figures that are exported with their intervals."""
_QUANTILES = {"latencySecondsP50": "0.5", "latencySecondsP90": "0.9", "latencySecondsP99": "0.99"}
TABLES = 16
"""Benchmarks of a pipeline whose figures are exported, those that ended last: each has hundreds of series, and who may
make Benchmarks can keep any number."""
_BOUNDS = ("value", "low", "high")


def samples(snapshot: Snapshot) -> Iterator[Sample]:
    """Yield the samples of all Benchmarks, first of those that have not ended: not all may be exported."""
    exported = Counter[tuple[str, str]]()
    for benchmark in sorted(snapshot.objects["Benchmark"], key=_rank, reverse=True):
        pipeline = namespace(benchmark), str(spec(benchmark)["pipeline"])
        labels = namespace(benchmark), name(benchmark), pipeline[1]
        yield from _progress(benchmark, labels)
        rows = status(benchmark).get("table") or ()
        exported[pipeline] += bool(rows)
        for row in rows if exported[pipeline] <= TABLES else ():
            series = (*labels, str(row["mode"]), str(row["sessionLength"]))
            for figure in row.get("figures") or ():
                yield from _figure(figure, series)


def _rank(benchmark: Object) -> tuple[bool, str, str, str]:
    """Return the sort key by which one that has not ended, whose progress somebody watches, exceeds all others."""
    ended = str(status(benchmark).get("completionTime") or "")
    return not runs.finished(benchmark), ended, created(benchmark), name(benchmark)


def _progress(benchmark: Object, labels: tuple[str, ...]) -> Iterator[Sample]:
    known = status(benchmark)
    progress = known.get("progress") or {}
    for state, field in (("done", "done"), ("planned", "total")):
        yield Sample("shai_benchmark_slices", (*labels, state), int(progress.get(field) or 0))
    if conditions.holds(benchmark, runs.SUCCEEDED) and known.get("completionTime"):
        ended = datetime.fromisoformat(str(known["completionTime"])).timestamp()
        yield Sample("shai_benchmark_completion_timestamp_seconds", labels, ended)
    for threshold in known.get("thresholds") or ():
        exceeded = threshold.get("exceeded") == TRUE
        yield Sample("shai_benchmark_threshold_exceeded", (*labels, str(threshold["threshold"])), exceeded)


def _figure(figure: Mapping[str, Any], series: tuple[str, ...]) -> Iterator[Sample]:
    known = {bound: _number(figure.get(bound)) for bound in _BOUNDS}
    found = {bound: value for bound, value in known.items() if value is not None}
    kind = str(figure.get("name") or "")
    if kind in _VALUES and "value" in found:
        yield Sample(_VALUES[kind], series, found["value"])
    elif kind in _QUANTILES and "value" in found:
        yield Sample("shai_benchmark_latency_seconds", (*series, _QUANTILES[kind]), found["value"])
    elif kind in _INTERVALS:
        for bound, value in found.items():
            yield Sample(_INTERVALS[kind], (*series, bound), value)


def _number(text: Any) -> float | None:
    """Return the number that a decimal text is; None when there is none, as the ends of an unbounded interval."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
