# SPDX-License-Identifier: BSD-2-Clause
"""The exact figures of a results.json: for the status of a Benchmark, and for thresholds."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from loadgen import thresholds
from loadgen.plan import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.results.samples import Sample

_MICRO, _MILLI, _PERCENT = 1e-6, 1e-3, 1e-2


def exact(results: Mapping[str, Any], entry: Mapping[str, Any], mode: str, paper: float | None) -> list[dict[str, str]]:
    """Return a row's figures in seconds and ratios, as decimal texts; ``paper`` is in percent."""
    figure = entry[mode]
    latency = figure["latencyMilliseconds"]
    found = [
        ("queriesPerSecond", figure["queriesPerSecond"], 1.0),
        ("cpuSecondsPerQuery", figure["cpuMicrosPerQuery"], _MICRO),
        ("cpuSecondsPerSession", figure["cpuMicrosPerSession"], _MICRO),
        *((f"latencySecondsP{rank}", latency[f"p{rank}"], _MILLI) for rank in (50, 90, 99)),
    ]
    if mode != BASELINE:
        found += [
            ("cpuOverheadRatio", figure["cpuOverhead"], 1.0),
            ("throughputOverheadRatio", figure["overhead"], 1.0),
            ("cpuAddedSecondsPerQuery", figure["addedCpuMicrosPerQuery"], _MICRO),
        ]
    if mode in results["addedPerSession"]:
        found.append(("cpuAddedSecondsPerSession", results["addedPerSession"][mode], _MICRO))
    if mode in results["interceptions"]:
        found.append(("interceptionsPerSession", {"estimate": results["interceptions"][mode]["perSession"]}, 1.0))
    if paper is not None:
        found.append(("paperThroughputOverheadRatio", {"estimate": paper}, _PERCENT))
    return [_decimal(name, estimate, unit) for name, estimate, unit in found]


def _decimal(name: str, estimate: Mapping[str, Any], unit: float) -> dict[str, str]:
    parts = {"value": "estimate", "low": "low", "high": "high"}
    known = {part: estimate.get(key) for part, key in parts.items()}
    return {"name": name, **{part: f"{value * unit:.6g}" for part, value in known.items() if value is not None}}


def judge(wanted: Sequence[str], results: Mapping[str, Any], measured: Sequence[Sample]) -> list[dict[str, str | bool]]:
    """Judge thresholds by what was measured; ThresholdError when one cannot be read.

    Each mode at each session length is a row. A figure is the median of its rounds; the interval does not count.
    """
    rows = list(_rows(results, measured))
    judgements = [(text, thresholds.parse(text).judge(rows)) for text in wanted]
    return [{"threshold": text, "exceeded": one.exceeded, "message": one.message} for text, one in judgements]


def _rows(results: Mapping[str, Any], measured: Sequence[Sample]) -> Iterator[thresholds.Row]:
    for entry in results["throughput"]:
        length = entry["sessionLength"]
        for mode in (name for name in entry if name != "sessionLength"):
            own = [sample for sample in measured if (sample.mode, sample.session_length) == (mode, length)]
            labels = {"mode": mode, "session_length": str(length)}
            yield thresholds.Row(labels, {**_counted(own), **_estimated(results, entry[mode], mode)})


def _counted(own: Sequence[Sample]) -> dict[str, float]:
    failures = sum(sample.failures + sample.violations for sample in own)
    requests = sum(sample.queries + sample.sessions + sample.failures for sample in own)
    return {
        "failures": failures,
        "failure_ratio": failures / requests if requests else math.nan,
        "violations": sum(sample.violations for sample in own),
        "sessions_per_second": median(sample.sessions / sample.seconds for sample in own),
        "login_p50": median(sample.login_p50_ms for sample in own) * _MILLI,
        "login_p90": median(sample.login_p90_ms for sample in own) * _MILLI,
        "login_p99": median(sample.login_p99_ms for sample in own) * _MILLI,
    }


def _estimated(results: Mapping[str, Any], figure: Mapping[str, Any], mode: str) -> dict[str, float]:
    found = {
        **{rank: figure["latencyMilliseconds"][rank]["estimate"] * _MILLI for rank in ("p50", "p90", "p99")},
        "queries_per_second": figure["queriesPerSecond"]["estimate"],
    }
    if mode != BASELINE:
        found["overhead"] = figure["cpuOverhead"]["estimate"]
        found["throughput_overhead"] = figure["overhead"]["estimate"]
        found["cpu_added_per_query"] = figure["addedCpuMicrosPerQuery"]["estimate"] * _MICRO
    if mode in results["addedPerSession"]:
        found["cpu_added_per_session"] = results["addedPerSession"][mode]["estimate"] * _MICRO
    return found
