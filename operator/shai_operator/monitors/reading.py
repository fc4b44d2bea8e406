# SPDX-License-Identifier: BSD-2-Clause
"""Converts a monitor's answers into the types of the pure layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from shai_operator.reconcile.bundles import label_parts
from shai_operator.reconcile.members import Monitor, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

_FAMILIES = ("shai_sessions", "shai_decisions", "shai_decision_seconds")


def monitor(status: Mapping[str, Any]) -> Monitor:
    """Read the answer to GET /v1/status."""
    bundle = status.get("bundle") or {}
    pipelines = status.get("pipelines") or []
    machine = status.get("machine") or {}
    return Monitor(
        ready=bool(status.get("ready")),
        reason=str(status.get("reason") or ""),
        bundle=str(bundle.get("label") or ""),
        hash=str(bundle.get("hash") or ""),
        tasks={
            (pipeline["name"], task["name"]): task["state"]
            for pipeline in pipelines
            for task in pipeline.get("tasks") or ()
        },
        analyzed=frozenset(
            pipeline["name"] for pipeline in pipelines if _analyzed(pipeline.get("lastAnalysis"), bundle.get("hash"))
        ),
        backend="" if machine.get("enforcement") == "none" else str(machine.get("backend") or ""),
        sessions=sum(int(pipeline.get("sessionTotal") or 0) for pipeline in pipelines),
    )


def sample(status: Mapping[str, Any], metrics: str, at: datetime) -> Sample | None:
    """Read the counters for judging members; None while the bundle in force was not made by the operator."""
    release, _ = label_parts(str((status.get("bundle") or {}).get("label") or ""))
    if not release:
        return None
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families("\n".join(_wanted(metrics.splitlines())) + "\n"):
        for measured in family.samples:
            key = measured.name + ("/denied" if measured.labels.get("allowed") == "false" else "")
            sums[key] = sums.get(key, 0.0) + measured.value
    denied = round(sums.get("shai_decisions_total/denied", 0))
    return Sample(
        at=at,
        started=str(status.get("started") or ""),
        release=release,
        sessions=round(sums.get("shai_sessions_total", 0)),
        decisions=round(sums.get("shai_decisions_total", 0)) + denied,
        refusals=denied,
        microseconds=round(sums.get("shai_decision_seconds_sum", 0.0) * 1e6),
    )


def _analyzed(run: Mapping[str, Any] | None, bundle: str | None) -> bool:
    return bool(run and run.get("succeeded") and run.get("hash") == bundle)


def _wanted(lines: Iterable[str]) -> Iterable[str]:
    """Leave out metric families that nothing uses: Go's own metrics are the largest part of the answer."""
    for line in lines:
        words = line.split(maxsplit=3)
        name = words[2] if line.startswith("#") and len(words) > 2 else line.partition("{")[0].partition(" ")[0]  # noqa: PLR2004
        if name.startswith(_FAMILIES):
            yield line
