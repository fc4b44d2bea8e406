# SPDX-License-Identifier: BSD-2-Clause
"""Converts a monitor's answers, as `MonitorClient` returns them, into the types of the pure layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.monitors.errors import MonitorAnswerError
from shai_operator.monitors.shapes import LARGEST
from shai_operator.reconcile.attempts import Ending, Reason, Refusal
from shai_operator.reconcile.bundles import label_parts
from shai_operator.reconcile.members import Monitor, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_RUNNING, _SUCCEEDED = "Running", "Succeeded"
_LARGEST_EXIT = 255
_REFUSALS_LISTED = 8


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


def sample(status: Mapping[str, Any], sums: Mapping[str, float], at: datetime) -> Sample | None:
    """Read the counters for judging members, of `counters`; None while the bundle in force is not the operator's.

    MonitorAnswerError when one counts nothing.
    """
    release, _ = label_parts(status["bundle"]["label"])
    if not release:
        return None
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


def _count(sums: Mapping[str, float], name: str, scale: float = 1.0) -> int:
    value = sums.get(name, 0.0) * scale
    if not 0 <= value <= LARGEST:  # nor is NaN
        raise MonitorAnswerError(f"the metric {name} is {value}; expected a number from 0 to {LARGEST}")
    return round(value)


def _analyzed(run: Mapping[str, Any], bundle: str) -> bool:
    return bool(run["succeeded"] and run["hash"] == bundle)
