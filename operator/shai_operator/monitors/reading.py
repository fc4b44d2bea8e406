# SPDX-License-Identifier: BSD-2-Clause
"""Converts a monitor's answers, as `MonitorClient` returns them, into the types of the pure layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from shai_operator.monitors.errors import MonitorAnswerError
from shai_operator.monitors.shapes import LARGEST
from shai_operator.reconcile.attempts import Ending, Reason, Refusal
from shai_operator.reconcile.bundles import label_parts
from shai_operator.reconcile.members import Monitor, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

_RUNNING, _SUCCEEDED = "Running", "Succeeded"
_LARGEST_EXIT = 255
_REFUSALS_LISTED = 8
_FAMILIES = ("shai_sessions", "shai_decisions", "shai_decision_seconds")


def monitor(status: Mapping[str, Any]) -> Monitor:
    """Read the answer to GET /v1/status."""
    bundle, pipelines, machine = status["bundle"], status["pipelines"], status["machine"]
    return Monitor(
        ready=status["ready"],
        reason=status["reason"],
        bundle=bundle["label"],
        hash=bundle["hash"],
        started=status["started"],
        tasks={(pipeline["name"], task["name"]): _state(task) for pipeline in pipelines for task in pipeline["tasks"]},
        analyzed=frozenset(
            pipeline["name"] for pipeline in pipelines if _analyzed(pipeline["lastAnalysis"], bundle["hash"])
        ),
        backend="" if machine["enforcement"] == "none" else machine["backend"],
        sessions=min(sum(pipeline["sessionTotal"] for pipeline in pipelines), LARGEST),
    )


def ending(run: Mapping[str, Any]) -> Ending | None:
    """Read how a run of a task has ended; None: it goes on."""
    if run["state"] == _RUNNING:
        return None
    code = run["exitStatus"]
    exited = run["state"] == _SUCCEEDED or 0 < code <= _LARGEST_EXIT
    return Ending(
        reason=Reason(run["state"]),
        message=run["message"],
        exit_code=code if exited else None,
        signal=run["signal"],
        restarts=run["restarts"],
        denials=run["denials"],
        refusals=tuple(Refusal(**refusal) for refusal in run["refusals"][:_REFUSALS_LISTED]),
    )


def sample(status: Mapping[str, Any], metrics: str, at: datetime) -> Sample | None:
    """Read the counters for judging members; None while the bundle in force was not made by the operator.

    MonitorAnswerError when the metrics are none.
    """
    release, _ = label_parts(status["bundle"]["label"])
    if not release:
        return None
    try:
        sums = _sums(metrics)
    except (ValueError, LookupError, TypeError) as error:  # of the parser, which says nowhere what it raises
        raise MonitorAnswerError(f"the metrics are not in Prometheus' text format: {error}") from error
    denied = _count(sums, "shai_decisions_total/denied")
    return Sample(
        at=at,
        started=status["started"],
        release=release,
        sessions=_count(sums, "shai_sessions_total"),
        decisions=_count(sums, "shai_decisions_total") + denied,
        refusals=denied,
        microseconds=_count(sums, "shai_decision_seconds_sum", 1e6),
    )


def _state(task: Mapping[str, Any]) -> str:
    """Return a task's state; one that has done its work is not undone when it is run again."""
    return _SUCCEEDED if task["completed"] else str(task["state"])


def _sums(metrics: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families("\n".join(_wanted(metrics.splitlines())) + "\n"):
        for measured in family.samples:
            key = measured.name + ("/denied" if measured.labels.get("allowed") == "false" else "")
            sums[key] = sums.get(key, 0.0) + measured.value
    return sums


def _count(sums: Mapping[str, float], name: str, scale: float = 1.0) -> int:
    value = sums.get(name, 0.0) * scale
    if not 0 <= value <= LARGEST:  # nor is NaN
        raise MonitorAnswerError(f"the metric {name} is {value}; expected a number from 0 to {LARGEST}")
    return round(value)


def _analyzed(run: Mapping[str, Any], bundle: str) -> bool:
    return bool(run["succeeded"] and run["hash"] == bundle)


def _wanted(lines: Iterable[str]) -> Iterable[str]:
    """Leave out metric families that nothing uses: Go's own metrics are the largest part of the answer."""
    for line in lines:
        words = line.split(maxsplit=3)
        name = words[2] if line.startswith("#") and len(words) > 2 else line.partition("{")[0].partition(" ")[0]  # noqa: PLR2004
        if name.startswith(_FAMILIES):
            yield line
