# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks: one measurement of a pipeline on one member, and its table.

Two measurements on one host would disturb each other, so they take `shai_operator.reconcile.turns`. A measurement that
was cut off because the operator ended starts again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import addresses, conditions, references, runs, sources, tenancy, thresholds
from shai_operator.reconcile.actions import NORMAL, WARNING, Create, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition, timestamp
from shai_operator.reconcile.objects import (
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
from shai_operator.reconcile.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Inventory, Object, Reference

WRITER = "shai-operator"
RESULTS_LIMIT = 900 << 10
"""Bytes of a ConfigMap's values; the API server takes 1 MiB for the whole object."""
ROWS_LISTED = 96

_DEFAULT_DEADLINE_SECONDS = 3600
_LOOK_AGAIN_SECONDS = 5.0
_HASH_DIGITS = 10
_CELL_LIMIT, _SUMMARY_LIMIT, _MESSAGE_LIMIT = 128, 512, 1024
_SUMMARIES = {"dynamic": "dynamic", "dynamicLazy": "dynamic-lazy", "shai": "shai", "control": "control"}
"""The fields of a Benchmark's summary, and the series that they are about."""
_PLAN_FIELDS = (
    "scenario",
    "modes",
    "rounds",
    "sliceSeconds",
    "sessionLengths",
    "concurrentUsers",
    "warmUpSeconds",
    "workers",
    "thresholds",
    "seed",
)
_NOBODY = Turns()
_OPTIONAL_RESULTS = "samples"
"""The part of the results that is left out where it does not fit: the raw slices."""


@dataclass(frozen=True)
class Measurement:
    """The state of the load generator. When it is done, it has ``results`` or ``error``."""

    done: int = 0
    total: int = 0
    """Slices; 0 while unknown."""
    message: str = ""
    results: Mapping[str, Any] | None = None
    """The content of results.json: "rows", "summary" and "thresholds" go into the status unchanged."""
    table: str = ""
    error: str = ""
    pool: str = ""
    """The JailPool whose member is measured."""

    @property
    def has_all_slices(self) -> bool:
        """Whether all is measured. Then the twins are removed, by runs that have a time limit of their own."""
        return 0 < self.total <= self.done


@dataclass(frozen=True)
class Target:
    """The member that a benchmark measures, and its host."""

    pool: str
    member: str
    host: str
    """The address of the host; empty for this machine."""


@dataclass(frozen=True)
class StartMeasurement:
    """Have the load generator measure a member."""

    target: Target
    plan: Mapping[str, Any]


@dataclass
class Decision:
    """The status to write, the measurement to start, and whether to end the running one."""

    plan: Plan = field(default_factory=Plan)
    start: StartMeasurement | None = None
    cancel: bool = False


def reconcile(
    benchmark: Object, measurement: Measurement | None, inventory: Inventory, now: datetime, turns: Turns = _NOBODY
) -> Decision:
    """Decide the next step of a benchmark. ``measurement`` is None if there was none."""
    decision = Decision()
    if deleting(benchmark) or runs.finished(benchmark):
        decision.cancel = True
        return decision
    ended = _ended(benchmark)
    if ended is None and measurement is not None and measurement.error:
        ended = Condition(runs.SUCCEEDED, FALSE, "Failed", measurement.error)
    if ended is None and (measurement is None or measurement.results is None):
        if measurement is None or not measurement.has_all_slices:
            ended = _late(benchmark, now)
        if ended is None and measurement is not None:
            ended = _stopped(benchmark, measurement, inventory)
    if ended is not None:
        decision.cancel = True
        _finish(decision.plan, benchmark, _values(benchmark, measurement, ended, now), ended, now)
    elif measurement is not None and measurement.results is not None:
        _complete(decision.plan, benchmark, measurement, now)
    elif measurement is not None:
        message = measurement.message or "the load generator starts"
        condition = Condition(runs.SUCCEEDED, UNKNOWN, "Running", message)
        values = {**_values(benchmark, measurement, condition, now), **_kept(benchmark)}
        decision.plan.add(SetStatus(benchmark, WRITER, values), Requeue(_LOOK_AGAIN_SECONDS))
    else:
        _begin(decision, benchmark, inventory, now, turns)
    return decision


def unkept(benchmark: Object, measurement: Measurement, why: str, now: datetime) -> Plan:
    """Return the end of a benchmark whose results the API server does not take, such as for a quota of ConfigMaps."""
    plan = Plan()
    message = f"its results are not kept: {why}; remove what is in the way, and create another one"
    ended = Condition(runs.SUCCEEDED, FALSE, "Failed", message)
    _finish(plan, benchmark, _values(benchmark, measurement, ended, now), ended, now)
    return plan


def target(benchmark: Object, inventory: Inventory) -> Target | Condition:
    """Return the first ready member, which is measured; without one, say in a condition what is missing."""
    wanted = spec(benchmark)["pipeline"]
    pipeline = inventory.find("Pipeline", namespace(benchmark), wanted)
    if pipeline is None:
        return _waits(f"waits for Pipeline {wanted}, which is not in namespace {namespace(benchmark)}; apply it")
    refusal = _refusal(benchmark, inventory)
    if refusal is not None:
        return refusal
    for condition, state in (("Ready", "to be ready"), (runs.ANALYZED, "to be analysed")):
        known = conditions.find(pipeline, condition)
        if not conditions.holds(pipeline, condition):
            return _waits(f"waits for Pipeline {wanted} {state}{': ' + known['message'] if known else ''}")
    pool = references.pool(pipeline)
    obj = inventory.find("JailPool", "", pool) or {}
    members = sorted(status(obj).get("members") or (), key=lambda member: int(member.get("ordinal", 0)))
    for member in members:
        if member.get("ready") == TRUE:
            return Target(pool, str(member["name"]), _host(obj, member.get("host", "")))
    return _waits(f"waits for a member of JailPool {pool} to be ready")


def _waits(message: str, reason: str = "Pending") -> Condition:
    return Condition(runs.SUCCEEDED, UNKNOWN, reason, message)


def _refusal(benchmark: Object, inventory: Inventory) -> Condition | None:
    """Say why a benchmark may not use its pipeline's pool; None: it may, or the pipeline or the pool does not exist."""
    pipeline = inventory.find("Pipeline", namespace(benchmark), spec(benchmark)["pipeline"])
    pool = inventory.find("JailPool", "", references.pool(pipeline)) if pipeline else None
    if pipeline is None or pool is None:
        return None
    refusal = tenancy.refusal(pipeline, inventory)
    if refusal is not None:
        return _waits(refusal.message, refusal.reason)
    why = tenancy.mode_refusal(pool, spec(benchmark).get("modes") or ())
    if why:
        return _waits(why, "ModeNotAllowed")
    why = sources.pipeline_refusal(pool, pipeline, inventory)
    return _waits(why, sources.REASON) if why else None


def _stopped(benchmark: Object, measurement: Measurement, inventory: Inventory) -> Condition | None:
    """Say why a measurement that runs may not go on; None: it may.

    Its pipeline is what lets it use the pool, so it ends with the pipeline, and when the pipeline names another pool.
    """
    refusal = _refusal(benchmark, inventory)
    if refusal is not None:
        return Condition(runs.SUCCEEDED, FALSE, refusal.reason, refusal.message)
    pipeline = inventory.find("Pipeline", namespace(benchmark), spec(benchmark)["pipeline"])
    pool = references.pool(pipeline) if pipeline else ""
    if pool == measurement.pool and inventory.find("JailPool", "", pool) is not None:
        return None
    message = f"Pipeline {spec(benchmark)['pipeline']} is no longer in JailPool {measurement.pool}; create another one"
    return Condition(runs.SUCCEEDED, FALSE, "Failed", message)


def _host(pool: Object, host: str) -> str:
    """Return a host's address: pools may give the same machine different names."""
    listed = {entry["name"]: addresses.canonical(entry["address"]) for entry in spec(pool).get("hosts") or ()}
    return listed.get(host, host)


def _begin(decision: Decision, benchmark: Object, inventory: Inventory, now: datetime, turns: Turns) -> None:
    found = target(benchmark, inventory)
    if isinstance(found, Target):
        first = _first_on(found.host, benchmark, inventory, turns)
        if first is not None:
            own = first.namespace == namespace(benchmark)
            other = f"Benchmark {first.namespace}/{first.name}" if own else "a Benchmark of another namespace"
            found = _waits(f"waits for {other}, which measures on the same host")
    if isinstance(found, Condition):
        values = {**_values(benchmark, None, found, now), **_kept(benchmark)}
        decision.plan.add(SetStatus(benchmark, WRITER, values), Requeue(_LOOK_AGAIN_SECONDS))
        return
    if status(benchmark).get("startTime"):
        message = "the measurement ended with the operator that ran it, and starts again"
        decision.plan.add(Emit(benchmark, WARNING, "Restarted", message))
    condition = Condition(runs.SUCCEEDED, UNKNOWN, "Running", f"starts on member {found.member}")
    values = _values(benchmark, None, condition, now)
    values["startTime"] = timestamp(now)
    decision.plan.add(SetStatus(benchmark, WRITER, values), Requeue(_LOOK_AGAIN_SECONDS))
    wanted = {key: spec(benchmark)[key] for key in _PLAN_FIELDS if key in spec(benchmark)}
    decision.start = StartMeasurement(found, {"name": name(benchmark), **wanted})


def _first_on(host: str, benchmark: Object, inventory: Inventory, turns: Turns) -> Reference | None:
    """Return the benchmark that measures on a host, or does so before this one; None: it is this one's turn."""
    if host in turns.measuring:
        return turns.measuring[host]
    own = reference(benchmark)
    others = [one for one in inventory.all("Benchmark") if not runs.finished(one) and not deleting(one)]
    for other in turns.order(host, [benchmark, *(one for one in others if reference(one) != own)]):
        if other is benchmark:
            break
        its = target(other, inventory)
        if isinstance(its, Target) and its.host == host:
            return reference(other)
    return None


def _ended(benchmark: Object) -> Condition | None:
    """Return the status with which a benchmark ends independently of its measurement; None: it continues."""
    if (benchmark["metadata"].get("annotations") or {}).get(runs.CANCEL) == "true":
        return Condition(runs.SUCCEEDED, FALSE, "Cancelled", f"cancelled by the annotation {runs.CANCEL}")
    if status(benchmark).get("startTime") and status(benchmark).get("observedGeneration") != generation(benchmark):
        message = "its spec was changed after the start, so that the results would be of neither; create another one"
        return Condition(runs.SUCCEEDED, FALSE, "Failed", message)
    return None


def _late(benchmark: Object, now: datetime) -> Condition | None:
    """Return the status of a benchmark that has no results at its deadline; None: it continues."""
    started = status(benchmark).get("startTime")
    seconds = int(spec(benchmark).get("deadlineSeconds", _DEFAULT_DEADLINE_SECONDS))
    if started and now >= datetime.fromisoformat(started) + timedelta(seconds=seconds):
        message = f"not done after {seconds} s; raise spec.deadlineSeconds, or measure fewer rounds"
        return Condition(runs.SUCCEEDED, FALSE, "TimedOut", message)
    return None


def _complete(plan: Plan, benchmark: Object, measurement: Measurement, now: datetime) -> None:
    found = measurement.results or {}
    results, size = _encoded(found, measurement.table)
    if size > RESULTS_LIMIT:
        message = f"the results have {size} bytes, a ConfigMap holds {RESULTS_LIMIT}; measure fewer session lengths"
        ended = Condition(runs.SUCCEEDED, FALSE, "Failed", message)
        _finish(plan, benchmark, _values(benchmark, measurement, ended, now), ended, now)
        return
    configuration = _config_map(benchmark, {"results.json": results, "table.txt": measurement.table})
    message = f"ConfigMap {name(configuration)} has the results and the table"
    ended = Condition(runs.SUCCEEDED, TRUE, "Complete", message)
    summary = found.get("summary") or {}
    values = _values(benchmark, measurement, ended, now) | {
        "results": name(configuration),
        "report": _report(configuration),
        "thresholds": thresholds.rows(found),
        "table": [_row(row) for row in (found.get("rows") or ())[:ROWS_LISTED]],
        "summary": {
            field: str(summary[series])[:_SUMMARY_LIMIT] for field, series in _SUMMARIES.items() if series in summary
        },
    }
    plan.add(Create(configuration))
    _finish(plan, benchmark, values, ended, now)
    judged = thresholds.condition(benchmark, ended, found)
    if judged is not None and judged.status == FALSE:
        plan.add(Emit(benchmark, WARNING, "ThresholdExceeded", judged.message))


def _encoded(found: Mapping[str, Any], table: str) -> tuple[str, int]:
    """Return results.json, and how many bytes it has with the table; without the raw slices if they do not fit."""
    for content in (found, {key: value for key, value in found.items() if key != _OPTIONAL_RESULTS}):
        results = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        size = len(results.encode()) + len(table.encode())
        if size <= RESULTS_LIMIT:
            break
    return results, size


def _report(configuration: Mapping[str, Any]) -> str:
    """Return the command that makes a report of the results; the names in it are DNS labels."""
    about = configuration["metadata"]
    get = f"kubectl -n {about['namespace']} get configmap {about['name']} -o json"
    return f"{get} | shai report - --file {about['name']}.html"


def _finish(
    plan: Plan,
    benchmark: Object,
    values: Mapping[str, Any],
    ended: Condition,
    now: datetime,
) -> None:
    plan.add(SetStatus(benchmark, WRITER, {**_kept(benchmark), **values, "completionTime": timestamp(now)}))
    if ended.reason != "Cancelled":
        plan.add(Emit(benchmark, NORMAL if ended.status == TRUE else WARNING, ended.reason, ended.message))


def _values(benchmark: Object, measurement: Measurement | None, condition: Condition, now: datetime) -> dict[str, Any]:
    seen = measurement or Measurement()
    judged = thresholds.condition(benchmark, condition, seen.results)
    return {
        "observedGeneration": generation(benchmark),
        "conditions": conditions.render(benchmark, [condition, *([judged] if judged else [])], now),
        "progress": {"done": seen.done, "total": seen.total, "message": seen.message[:_MESSAGE_LIMIT]},
    }


def _kept(benchmark: Object) -> dict[str, Any]:
    """Return the fields that a status keeps after the measurement has started."""
    return {key: status(benchmark)[key] for key in ("startTime",) if key in status(benchmark)}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[:_CELL_LIMIT] if isinstance(value, str) else value for key, value in row.items()}


def _config_map(benchmark: Object, data: Mapping[str, str]) -> Mapping[str, Any]:
    """Make the ConfigMap. Its name follows from its content, so creating it twice is harmless."""
    digest = hashlib.sha256("\0".join([uid(benchmark), *data.values()]).encode()).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{name(benchmark)}-{digest[:_HASH_DIGITS]}",
            "namespace": namespace(benchmark),
            "ownerReferences": [owner_reference(benchmark)],
        },
        "immutable": True,
        "data": dict(data),
    }
