# SPDX-License-Identifier: BSD-2-Clause
"""Runs of the offline analysis, from start to result.

A run asks every ready member of the pipeline's pool for an analysis. It is complete when all of them are
done, and reports the worst of their results. A run that fails changes nothing: the monitors keep the last
good result in force.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions, references, results, tenancy
from shai_operator.reconcile.actions import NORMAL, WARNING, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition, timestamp
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.objects import created, deleting, generation, name, namespace, spec, status
from shai_operator.reconcile.results import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.results import MemberRun

WRITER = "shai-operator"
ANALYZED_WRITER = "shai-operator-analysis"
SUCCEEDED, ANALYZED = "Succeeded", "Analyzed"
CANCEL = "shai.dev/cancel"
"""Annotation: with the value "true", end the run."""

_DEFAULT_DEADLINE_SECONDS = 3600
_LOOK_AGAIN_SECONDS = 5.0
_EXAMPLES = 3
_HASH_SHOWN = 12
_IS_DONE = ("is done", "are done")


@dataclass(frozen=True)
class Shards:
    """The pods that share a member's analysis."""

    count: int
    cpu_millicores: int
    memory_megabytes: int
    seconds: int
    """Of the run's deadline."""


@dataclass(frozen=True)
class StartAnalysis:
    """Start an analysis on a member."""

    member: str
    pipeline: str
    scope: str
    full: bool
    shards: Shards | None = None
    """None: the member analyses by itself."""


@dataclass(frozen=True)
class CancelAnalysis:
    """Cancel a member's analysis; its last result stays in force."""

    member: str


@dataclass
class Decision:
    """The status to write, and the requests to members."""

    plan: Plan = field(default_factory=Plan)
    requests: list[StartAnalysis | CancelAnalysis] = field(default_factory=list)


@dataclass(frozen=True)
class _Seen:
    """The input of a decision."""

    run: Object
    members: Sequence[MemberRun]
    inventory: Inventory
    now: datetime

    @property
    def pipeline(self) -> Object | None:
        return self.inventory.find("Pipeline", namespace(self.run), spec(self.run)["pipeline"])

    @property
    def refusal(self) -> Condition | None:
        """Why the pipeline may not use its pool."""
        return tenancy.refusal(self.pipeline, self.inventory) if self.pipeline else None

    @property
    def analysis(self) -> Object | None:
        """The OfflineAnalysis that the run belongs to."""
        owner = spec(self.run).get("offlineAnalysis")
        return self.inventory.find("OfflineAnalysis", namespace(self.run), owner) if owner else None

    @property
    def bundle(self) -> str:
        """The pipeline's present bundle."""
        return str(status(self.pipeline).get("bundle", "")) if self.pipeline else ""


def finished(run: Object) -> bool:
    """Whether a run (or a benchmark) has ended, successfully or not."""
    known = conditions.find(run, SUCCEEDED)
    return known is not None and known["status"] != UNKNOWN


def of_pipeline(inventory: Inventory, space: str, pipeline: str) -> list[Object]:
    """List the runs of a pipeline, oldest first."""
    listed = [run for run in inventory.all("AnalysisRun", space) if spec(run).get("pipeline") == pipeline]
    return sorted(listed, key=lambda run: (created(run), name(run)))


def reconcile(run: Object, members: Sequence[MemberRun], inventory: Inventory, now: datetime) -> Decision:
    """Decide the next step of a run. ``members`` are the members of the pipeline's pool."""
    seen = _Seen(run, members, inventory, now)
    decision = Decision()
    if deleting(run) or finished(run):
        decision.requests += _cancellations(members)
        return decision
    if seen.refusal is not None:
        decision.requests += _cancellations(members)
        seen = replace(seen, members=())
    ended = _ended(seen) or _outcome(seen.members)
    if ended is None:
        _go_on(decision, seen)
    else:
        decision.requests += _cancellations(seen.members)
        _finish(decision.plan, seen, ended)
    return decision


def analyzed(pipeline: Object, inventory: Inventory, now: datetime) -> Plan:
    """Return a pipeline's condition Analyzed: the result of the analysis of its present bundle.

    A policy may refuse expected accesses: that is its purpose. A task that cannot do its work is a finding, but the
    pipeline counts as analysed.
    """
    bundle = str(status(pipeline).get("bundle", ""))
    if deleting(pipeline) or not bundle:
        return Plan()
    condition = _analyzed(pipeline, bundle, inventory)
    rendered = conditions.render(pipeline, [condition], now, _analyzed_generation(pipeline))
    return Plan([SetStatus(pipeline, ANALYZED_WRITER, {"conditions": rendered})])


def _analyzed_generation(pipeline: Object) -> int:
    """Return the generation of which the bundle in force is: an earlier one until the present one is rolled out."""
    rollout = conditions.current(pipeline, "RolledOut")
    if rollout is not None and rollout["status"] == TRUE:
        return generation(pipeline)
    return int((conditions.find(pipeline, ANALYZED) or {}).get("observedGeneration") or 0)


def _analyzed(pipeline: Object, bundle: str, inventory: Inventory) -> Condition:
    ended = [
        run
        for run in of_pipeline(inventory, namespace(pipeline), name(pipeline))
        if conditions.reason(run, SUCCEEDED) in {"Complete", "Failed", "TimedOut"}
        and status(run).get("bundle") == bundle
    ]
    last = max(ended, key=lambda run: (status(run).get("completionTime", ""), created(run)), default=None)
    if last is None:
        return Condition(ANALYZED, UNKNOWN, "Pending", f"{_bundle_text(bundle)} has not been analysed yet")
    about = f"AnalysisRun {name(last)}"
    if not conditions.holds(last, SUCCEEDED):
        known = conditions.find(last, SUCCEEDED) or {}
        return Condition(ANALYZED, FALSE, "Failed", f"{about}: {known.get('message', '')}")
    warnings = status(last).get("warnings") or ()
    if warnings:
        more = int(status(last).get("warningsTotal") or 0) - 1
        others = f"; and {count(more, 'more warning')} in its status.warnings" if more > 0 else ""
        return Condition(ANALYZED, TRUE, "TasksBlocked", f"{about}: {warnings[0]['message']}{others}")
    return Condition(ANALYZED, TRUE, "Complete", f"{about}: {_tally(status(last))}")


def _tally(run_status: Mapping[str, Any]) -> str:
    """Say in a sentence how many expected accesses are granted, refused and undecided."""
    expected, granted, refused, undecided = (int(run_status.get(field) or 0) for field in results.TALLY)
    text = f"of {count(expected, 'expected access')} {granted} {'is' if granted == 1 else 'are'} granted"
    causes = [f"{policy or 'conduits without a policy'} {number}" for policy, number in results.refusing(run_status)]
    text += f", {refused} refused by policy" + (f" ({', '.join(causes)})" if causes else "")
    return f"{text}, {undecided} decided when they happen"


def _go_on(decision: Decision, seen: _Seen) -> None:
    taking_part = results.usable(seen.members)
    wanted = spec(seen.run)
    for member in taking_part:
        if member.state == State.PENDING:
            decision.requests.append(
                StartAnalysis(
                    member.name,
                    wanted["pipeline"],
                    wanted.get("scope", "All"),
                    bool(wanted.get("full")),
                    _shards(wanted),
                )
            )
    if taking_part:
        done = sum(member.state in {State.COMPLETE, State.FAILED} for member in taking_part)
        condition = Condition(SUCCEEDED, UNKNOWN, "Running", count(done, "member", _IS_DONE, of=len(taking_part)))
    else:
        condition = Condition(SUCCEEDED, UNKNOWN, "Pending", _waits_for(seen))
    values = _values(seen, condition)
    if taking_part:
        values["startTime"] = status(seen.run).get("startTime") or timestamp(seen.now)
    decision.plan.add(SetStatus(seen.run, WRITER, values), Requeue(_LOOK_AGAIN_SECONDS))


def _shards(wanted: Mapping[str, Any]) -> Shards | None:
    asked = wanted.get("shards")
    if asked is None:
        return None
    return Shards(
        int(asked["count"]),
        int(asked["cpuMillicores"]),
        int(asked["memoryMegabytes"]),
        int(wanted.get("deadlineSeconds", _DEFAULT_DEADLINE_SECONDS)),
    )


def _waits_for(seen: _Seen) -> str:
    if seen.pipeline is None:
        pipeline = spec(seen.run)["pipeline"]
        return f"the run waits for Pipeline {pipeline}, which is not in namespace {namespace(seen.run)}; apply it"
    if seen.refusal is not None:
        return f"the run waits: {seen.refusal.message}"
    why = "; ".join(f"{member.name}: {member.error}" for member in seen.members[:_EXAMPLES]) or "it has none"
    return f"the run waits for a member of JailPool {references.pool(seen.pipeline)} to be ready ({why})"


def _ended(seen: _Seen) -> Condition | None:
    """Return the status of a run that ends before its members are done; None when it continues."""
    run = seen.run
    if (run["metadata"].get("annotations") or {}).get(CANCEL) == "true":
        return Condition(SUCCEEDED, FALSE, "Cancelled", f"cancelled by the annotation {CANCEL}")
    if seen.pipeline is None and status(run).get("startTime"):
        return Condition(
            SUCCEEDED, FALSE, "Failed", f"Pipeline {spec(run)['pipeline']} was deleted while the run went on"
        )
    superseded = _superseded(seen)
    if superseded:
        return Condition(SUCCEEDED, FALSE, "Superseded", superseded)
    seconds = int(spec(run).get("deadlineSeconds", _DEFAULT_DEADLINE_SECONDS))
    since = datetime.fromisoformat(status(run).get("startTime") or created(run))
    if seen.now >= since + timedelta(seconds=seconds):
        message = f"not done after {seconds} s; look at the members of its pool, or give it more deadlineSeconds"
        return Condition(SUCCEEDED, FALSE, "TimedOut", message)
    return None


def _superseded(seen: _Seen) -> str:
    """Say which run has replaced this one; empty when none has."""
    wanted = spec(seen.run)
    if wanted["trigger"] == "Change":
        if seen.bundle and wanted.get("bundle") and wanted["bundle"] != seen.bundle:
            return f"it is for {_bundle_text(wanted['bundle'])}, and {_bundle_text(seen.bundle)} has taken its place"
        return ""
    oa = seen.analysis
    if oa is None or wanted["trigger"] != "Schedule" or spec(oa).get("concurrencyPolicy") != "Replace":
        return ""
    newer = [
        run
        for run in of_pipeline(seen.inventory, namespace(seen.run), wanted["pipeline"])
        if spec(run).get("offlineAnalysis") == name(oa)
        and (spec(run).get("scheduledTime") or "") > (wanted.get("scheduledTime") or "")
    ]
    return f"AnalysisRun {name(newer[-1])} takes its place" if newer else ""


def _outcome(members: Sequence[MemberRun]) -> Condition | None:
    """Return the status of a run whose members are all done; None while one of them is not."""
    taking_part = results.usable(members)
    if not taking_part or any(member.state in {State.PENDING, State.RUNNING} for member in taking_part):
        return None
    failed = [member for member in taking_part if member.state == State.FAILED]
    if failed:
        causes = "; ".join(f"{member.name}: {member.error}" for member in failed[:_EXAMPLES])
        more = f"; and {len(failed) - _EXAMPLES} more" if len(failed) > _EXAMPLES else ""
        message = f"{count(len(failed), 'member', of=len(taking_part))} failed: {causes}{more}"
        return Condition(SUCCEEDED, FALSE, "Failed", message)
    left_out = [member.name for member in members if member.state == State.UNREADY]
    without = f"; not ready and left out: {', '.join(left_out[:_EXAMPLES])}" if left_out else ""
    return Condition(SUCCEEDED, TRUE, "Complete", count(len(taking_part), "member", _IS_DONE) + without)


def _finish(plan: Plan, seen: _Seen, ended: Condition) -> None:
    good = ended.status == TRUE
    if not good:
        message = f"{ended.message.rstrip('.')}. {_still(seen)}"
        ended = Condition(ended.type, ended.status, ended.reason, message)
    values = _values(seen, ended)
    started = status(seen.run).get("startTime") or (timestamp(seen.now) if good else "")
    if started:
        values["startTime"] = started
    values["completionTime"] = timestamp(seen.now)
    plan.add(SetStatus(seen.run, WRITER, values))
    if ended.reason not in {"Cancelled", "Superseded"}:
        plan.add(Emit(seen.run, NORMAL if good else WARNING, ended.reason, ended.message))


def _still(seen: _Seen) -> str:
    """Say which result stays in force after a run that did not succeed."""
    good = [
        run
        for run in of_pipeline(seen.inventory, namespace(seen.run), spec(seen.run)["pipeline"])
        if conditions.holds(run, SUCCEEDED)
    ]
    last = max(good, key=lambda run: (status(run).get("completionTime", ""), created(run)), default=None)
    if last is None:
        return "There is no earlier result: what was not foreseen is decided access by access"
    return f"The result of AnalysisRun {name(last)} ({_bundle_text(status(last).get('bundle', ''))}) stays in force"


def _values(seen: _Seen, condition: Condition) -> dict[str, Any]:
    """Return the status of a run, without its times."""
    values: dict[str, Any] = {
        "observedGeneration": generation(seen.run),
        "conditions": conditions.render(seen.run, [condition], seen.now),
        "progress": results.progress(seen.members),
        "members": results.rows(seen.members),
        **results.found(seen.members),
    }
    bundle = status(seen.run).get("bundle") or spec(seen.run).get("bundle") or seen.bundle
    if bundle:
        values["bundle"] = bundle
    return values


def _cancellations(members: Sequence[MemberRun]) -> list[CancelAnalysis]:
    return [CancelAnalysis(member.name) for member in members if member.state == State.RUNNING]


def _bundle_text(bundle: str) -> str:
    return f"bundle {bundle[:_HASH_SHOWN]}" if bundle else "an unknown bundle"
