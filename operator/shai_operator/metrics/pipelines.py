# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of policies, pipelines and their analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.metrics.samples import Sample
from shai_operator.reconcile import conditions, policies, runs
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN
from shai_operator.reconcile.objects import created, name, namespace, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shai_operator.metrics.samples import Snapshot
    from shai_operator.reconcile.objects import Object


def samples(snapshot: Snapshot) -> Iterator[Sample]:
    """Yield the samples of all policies and pipelines.

    Runs that have not ended come first, then the newest: not all may be exported.
    """
    for policy in snapshot.objects["Policy"]:
        revisions = (str(status(policy).get(field) or "") for field in ("stableRevision", "candidateRevision"))
        labels = namespace(policy), name(policy), policies.mode(policy), *revisions
        yield Sample("shai_policy_revision_info", labels, 1)
    for pipeline in snapshot.objects["Pipeline"]:
        yield from _conditions(pipeline)
    last: dict[tuple[str, str], Object] = {}
    for run in sorted(snapshot.objects["AnalysisRun"], key=_rank, reverse=True):
        yield from _run(run)
        if conditions.holds(run, runs.SUCCEEDED):
            key = namespace(run), str(spec(run)["pipeline"])
            last[key] = max(last.get(key, run), run, key=_completed)
    for key, run in last.items():
        for task, blocked in _blocked(run).items():
            yield Sample("shai_analysis_blocked_accesses", (*key, task), blocked)


def _conditions(pipeline: Object) -> Iterator[Sample]:
    for condition in status(pipeline).get("conditions") or ():
        for possible in (TRUE, FALSE, UNKNOWN):
            labels = namespace(pipeline), name(pipeline), str(condition["type"]), possible.lower()
            yield Sample("shai_pipeline_condition", labels, condition["status"] == possible)


def _run(run: Object) -> Iterator[Sample]:
    labels = namespace(run), str(spec(run)["pipeline"]), name(run)
    reason = conditions.reason(run, runs.SUCCEEDED) or "Pending"
    yield Sample("shai_analysis_run_info", (*labels, str(spec(run).get("trigger") or ""), reason), 1)
    if "durationMilliseconds" in status(run):
        yield Sample("shai_analysis_run_duration_seconds", labels, int(status(run)["durationMilliseconds"]) / 1e3)


def _rank(run: Object) -> tuple[bool, str, str]:
    return not runs.finished(run), *_made(run)


def _made(run: Object) -> tuple[str, str]:
    return created(run), name(run)


def _completed(run: Object) -> tuple[str, str, str]:
    return str(status(run).get("completionTime") or ""), *_made(run)


def _blocked(run: Object) -> dict[str, int]:
    """Count for each task the accesses of its instances of which nothing is granted."""
    found = {str(entry["task"]): 0 for entry in status(run).get("accesses") or ()}
    for warning in status(run).get("warnings") or ():
        task = str(warning.get("task") or "")
        found[task] = found.get(task, 0) + int(warning.get("instances") or 0)
    return found
