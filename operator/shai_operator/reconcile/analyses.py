# SPDX-License-Identifier: BSD-2-Clause
"""When the offline analysis runs: by the schedules of OfflineAnalysis objects, and on a changed bundle.

As with a CronJob, the name of a run contains the minute for which it was scheduled. If the operator crashes between
creating the run and recording it, it therefore cannot start the run twice.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions, runs, schedule
from shai_operator.reconcile.actions import NORMAL, WARNING, Create, Delete, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, Condition, timestamp
from shai_operator.reconcile.objects import (
    API_VERSION,
    created,
    deleting,
    generation,
    name,
    namespace,
    owner_reference,
    reference,
    spec,
    status,
    uid,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.schedule import Missed, Schedule

WRITER = "shai-operator"
ACTIVE_LISTED = 16

_SUCCESSES_KEPT, _FAILURES_KEPT = 3, 1
_LONGEST_WAIT_SECONDS = 3600.0
"""Longest wait before the wall clock is read again: a timer does not notice when the wall clock is set."""
_BUNDLE_DIGITS, _NAME_DIGITS = 12, 8
_PIPELINE_LIMIT = 63 - 1 - _BUNDLE_DIGITS


@dataclass(frozen=True)
class _Seen:
    """The state of an OfflineAnalysis: its unfinished runs, and the scheduled time of its last run."""

    oa: Object
    active: list[str]
    last: str
    now: datetime


def reconcile(oa: Object, inventory: Inventory, now: datetime) -> Plan:
    """Start the run that is due, if any, delete old runs, and write the status."""
    plan = Plan()
    if deleting(oa):
        return plan  # its runs are deleted with it
    own = [
        run
        for run in runs.of_pipeline(inventory, namespace(oa), spec(oa)["pipeline"])
        if spec(run).get("offlineAnalysis") == name(oa)
    ]
    seen = _Seen(
        oa=oa,
        active=[name(run) for run in own if not runs.finished(run)],
        last=max([str(status(oa).get("lastScheduleTime", "")), *(_scheduled_for(run, oa, now) for run in own)]),
        now=now,
    )
    upcoming: datetime | None = None
    try:
        times = schedule.parse(spec(oa)["schedule"], spec(oa).get("timeZone") or "Etc/UTC")
        ready = _ready(oa, inventory, times.next(now))
        if ready.status == TRUE:
            upcoming = times.next(now)
            seen = _start(plan, seen, times)
    except schedule.ScheduleError as error:
        ready = Condition("Ready", FALSE, error.reason, str(error))
    if ready.status == FALSE and ready.reason != "Suspended":
        plan.add(Emit(oa, WARNING, ready.reason, ready.message))
    plan.add(SetStatus(oa, WRITER, _status(seen, own, ready, upcoming)))
    _drop_old(plan, (run for run in own if runs.finished(run)), spec(oa))
    if upcoming is not None:
        plan.add(Requeue(min((upcoming - now).total_seconds(), _LONGEST_WAIT_SECONDS)))
    return plan


def of_pipeline(pipeline: Object, inventory: Inventory, now: datetime) -> Plan:
    """Report the analysis of a pipeline's present bundle, and create its run if there is none."""
    return Plan([*runs.analyzed(pipeline, inventory, now).actions, *changes(pipeline, inventory).actions])


def changes(pipeline: Object, inventory: Inventory) -> Plan:
    """Create a run for a changed bundle, unless an OfflineAnalysis of the pipeline ignores changes or is suspended."""
    plan = Plan()
    bundle = str(status(pipeline).get("bundle", ""))
    if deleting(pipeline) or not bundle:
        return plan
    analyses = [
        analysis
        for analysis in inventory.all("OfflineAnalysis", namespace(pipeline))
        if spec(analysis)["pipeline"] == name(pipeline) and not deleting(analysis)
    ]
    made = [
        run
        for run in runs.of_pipeline(inventory, namespace(pipeline), name(pipeline))
        if spec(run)["trigger"] == "Change"
    ]
    present = change_name(name(pipeline), bundle)
    existing = next((run for run in made if name(run) == present), None)
    others = [run for run in made if name(run) != present]
    _drop_old(plan, (run for run in others if runs.finished(run)), spec(analyses[0]) if analyses else {})
    if any(spec(analysis).get("onChange") == "Ignore" or spec(analysis).get("suspend") for analysis in analyses):
        return plan
    if existing is None:
        plan.add(Create(_change(pipeline, bundle, present, analyses)))
        message = f"AnalysisRun {present} analyses the bundle that is now in force"
        plan.add(Emit(pipeline, NORMAL, "AnalysisStarted", message))
    elif runs.finished(existing) and any(created(run) > created(existing) for run in others):
        # The pipeline has returned to an earlier bundle. Its old run is being deleted; then a new run is created.
        plan.add(Delete(reference(existing), uid(existing)))
    return plan


def change_name(pipeline: str, bundle: str) -> str:
    """Return the name of the run for a bundle; the name of a long pipeline is cut, and a hash makes it unique again."""
    if len(pipeline) > _PIPELINE_LIMIT:
        digest = hashlib.sha256(pipeline.encode()).hexdigest()[:_NAME_DIGITS]
        pipeline = f"{pipeline[: _PIPELINE_LIMIT - 1 - _NAME_DIGITS]}-{digest}"
    return f"{pipeline}-{bundle[:_BUNDLE_DIGITS]}"


def _ready(oa: Object, inventory: Inventory, upcoming: datetime) -> Condition:
    pipeline = spec(oa)["pipeline"]
    if inventory.find("Pipeline", namespace(oa), pipeline) is None:
        message = f"there is no Pipeline {pipeline} in namespace {namespace(oa)}; apply it, or correct spec.pipeline"
        return Condition("Ready", FALSE, "PipelineMissing", message)
    if spec(oa).get("suspend"):
        return Condition("Ready", FALSE, "Suspended", "nothing is started by the schedule until spec.suspend is false")
    return Condition("Ready", TRUE, "Scheduled", f"the next run is due at {timestamp(upcoming)}")


def _scheduled_for(run: Object, oa: Object, now: datetime) -> str:
    """Return the time for which a run was scheduled; empty when its OfflineAnalysis has no such time in its schedule.

    Anybody who may create runs can write any time. A time in the future would otherwise end the schedule.
    """
    try:
        time = datetime.fromisoformat(str(spec(run).get("scheduledTime") or ""))
    except ValueError:
        return ""
    possible = time.tzinfo is not None and datetime.fromisoformat(created(oa)) <= time <= now
    return timestamp(time.astimezone(UTC)) if possible else ""


def _start(plan: Plan, seen: _Seen, times: Schedule) -> _Seen:
    """Start the run for the latest scheduled time that has passed, if any; return the state after that."""
    oa = seen.oa
    since = datetime.fromisoformat(seen.last or created(oa))
    patience = spec(oa).get("startingDeadlineSeconds")
    earliest = since if patience is None else max(since, seen.now - timedelta(seconds=patience))
    due = times.missed(earliest, seen.now)
    if due is None:
        late = times.missed(since, seen.now)
        if late is not None:
            message = (
                f"the run of {timestamp(late.latest)} was not started: it is later than spec.startingDeadlineSeconds "
                f"({patience} s) allows"
            )
            plan.add(Emit(oa, WARNING, "MissedSchedule", message))
        return seen
    if seen.active and spec(oa).get("concurrencyPolicy", "Forbid") == "Forbid":
        message = f"the run of {timestamp(due.latest)} waits: AnalysisRun {seen.active[-1]} is not done"
        plan.add(Emit(oa, NORMAL, "AlreadyActive", message))
        return seen
    run = _scheduled(oa, due.latest)
    plan.add(Create(run), _started(oa, name(run), due, earliest))
    return replace(seen, active=[*seen.active, name(run)], last=timestamp(due.latest))


def _started(oa: Object, run: str, due: Missed, earliest: datetime) -> Emit:
    """Make the event for a run that makes up for all scheduled times since ``earliest``."""
    if due.too_many:
        message = (
            f"more than {schedule.MOST_COUNTED} runs were due since {timestamp(earliest)}; AnalysisRun {run} makes up "
            "for all of them. Set or lower spec.startingDeadlineSeconds, or check the clock"
        )
        return Emit(oa, WARNING, "TooManyMissedTimes", message)
    if due.count > 1:
        message = f"{due.count} runs were due since {timestamp(earliest)}; AnalysisRun {run} makes up for them"
        return Emit(oa, WARNING, "MissedSchedule", message)
    return Emit(oa, NORMAL, "AnalysisStarted", f"AnalysisRun {run} was started")


def _status(seen: _Seen, own: Iterable[Object], ready: Condition, upcoming: datetime | None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "observedGeneration": generation(seen.oa),
        "conditions": conditions.render(seen.oa, [ready], seen.now),
        "active": seen.active[:ACTIVE_LISTED],
    }
    good = [str(status(run).get("completionTime", "")) for run in own if conditions.holds(run, runs.SUCCEEDED)]
    success = max([str(status(seen.oa).get("lastSuccessfulTime", "")), *good])
    if seen.last:
        values["lastScheduleTime"] = seen.last
    if success:
        values["lastSuccessfulTime"] = success
    if upcoming is not None:
        values["nextScheduleTime"] = timestamp(upcoming)
    return values


def _drop_old(plan: Plan, finished: Iterable[Object], limits: Mapping[str, Any]) -> None:
    """Delete the oldest finished runs beyond the limits of an OfflineAnalysis."""
    good: list[Object] = []
    bad: list[Object] = []
    for run in finished:
        (good if conditions.holds(run, runs.SUCCEEDED) else bad).append(run)
    for found, limit in (
        (good, limits.get("successfulRunsHistoryLimit", _SUCCESSES_KEPT)),
        (bad, limits.get("failedRunsHistoryLimit", _FAILURES_KEPT)),
    ):
        for run in found[: max(len(found) - int(limit), 0)]:
            if not deleting(run):
                plan.add(Delete(reference(run), uid(run)))


def _scheduled(oa: Object, time: datetime) -> Mapping[str, Any]:
    return _run(
        oa,
        f"{name(oa)}-{int(time.timestamp()) // 60}",
        {
            "pipeline": spec(oa)["pipeline"],
            "offlineAnalysis": name(oa),
            "trigger": "Schedule",
            "scheduledTime": timestamp(time),
            **_inherited(oa),
        },
    )


def _change(pipeline: Object, bundle: str, run: str, analyses: list[Object]) -> Mapping[str, Any]:
    wanted = {"pipeline": name(pipeline), "trigger": "Change", "bundle": bundle}
    return _run(pipeline, run, wanted | (_inherited(analyses[0]) if analyses else {}))


def _inherited(oa: Object) -> dict[str, Any]:
    """Return the fields that a run copies from its OfflineAnalysis."""
    return {key: spec(oa)[key] for key in ("scope", "deadlineSeconds", "shards") if key in spec(oa)}


def _run(owner: Object, run: str, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "AnalysisRun",
        "metadata": {"name": run, "namespace": namespace(owner), "ownerReferences": [owner_reference(owner)]},
        "spec": dict(wanted),
    }
