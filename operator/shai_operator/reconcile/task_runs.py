# SPDX-License-Identifier: BSD-2-Clause
"""Runs of tasks with ``run: Once``, from the object to the end of the program.

One run of a task goes on on a member at a time; the others wait, those that a member needs before it serves first. What
is known of a run is in its status: an operator that starts anew continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import attempts, conditions, references, task_run_members
from shai_operator.reconcile.actions import NORMAL, WARNING, Delete, Emit, Plan, Requeue, SetFinalizer, SetStatus
from shai_operator.reconcile.attempts import Attempt, Ending, Reason
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition, timestamp
from shai_operator.reconcile.objects import (
    FINALIZER,
    deleting,
    finalizers,
    force_delete,
    generation,
    name,
    namespace,
    reference,
    spec,
    status,
    uid,
)
from shai_operator.reconcile.task_run_members import SUCCEEDED, finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.task_run_members import Member

WRITER = "shai-operator"
_LOOK_AGAIN_SECONDS, _LONGEST_WAIT_SECONDS = 5.0, 3600.0
_FAILURES = {
    Reason.FAILED: "Failed",
    Reason.INTERRUPTED: "Interrupted",
    Reason.STOPPED: "Stopped",
    Reason.LOST: "MemberGone",
}
"""The reason of a run that ends with its last attempt, by how that ended."""


@dataclass(frozen=True)
class Waiting:
    """Why nothing is known of the attempt that goes on."""

    message: str
    queued: bool = False
    """Whether the attempt has not begun, because another run goes on there."""


@dataclass(frozen=True)
class Follow:
    """Have a member start an attempt, unless it has it already, and wait for its end."""

    member: str
    pipeline: str
    task: str
    attempt: Attempt


@dataclass(frozen=True)
class Stop:
    """Have a member end an attempt. One that has not begun never will."""

    member: str
    pipeline: str
    task: str
    attempt: Attempt


@dataclass
class Decision:
    """The status to write, and the request to a member: what is requested already is not requested again."""

    plan: Plan = field(default_factory=Plan)
    request: Follow | Stop | None = None


@dataclass(frozen=True)
class _Seen:
    """The input of a decision."""

    run: Object
    found: Sequence[Member] | None
    known: Ending | Waiting | None
    inventory: Inventory
    now: datetime

    @property
    def members(self) -> Sequence[Member]:
        return self.found or ()

    @property
    def pipeline(self) -> Object | None:
        return self.inventory.find("Pipeline", namespace(self.run), spec(self.run)["pipeline"])


def reconcile(
    run: Object, members: Sequence[Member] | None, known: Ending | Waiting | None, inventory: Inventory, now: datetime
) -> Decision:
    """Decide the next step of a run.

    ``members`` are those of the pipeline's pool; None: they are not known yet. ``known`` is what a member has said of
    the attempt that goes on; None: it was not asked, or has not answered yet.
    """
    seen = _Seen(run, members, known, inventory, now)
    decision = Decision()
    if finished(run):
        _release(decision.plan, run)
        _expire(decision.plan, run, now)
        return decision
    attempt = attempts.active(run)
    if attempt is not None:
        _go_on(decision, seen, attempt)
    elif deleting(run):
        _release(decision.plan, run)
    else:
        _begin(decision, seen)
    return decision


def _expire(plan: Plan, run: Object, now: datetime) -> None:
    """Delete a run when its time has come."""
    seconds = spec(run).get("ttlSecondsAfterFinished")
    completed = status(run).get("completionTime")
    if seconds is None or not completed or deleting(run):
        return
    left = (datetime.fromisoformat(completed) + timedelta(seconds=int(seconds)) - now).total_seconds()
    plan.add(Delete(reference(run), uid(run)) if left <= 0 else Requeue(min(left, _LONGEST_WAIT_SECONDS)))


def _release(plan: Plan, run: Object) -> None:
    if FINALIZER in finalizers(run):
        plan.add(SetFinalizer(run, present=False))


# What goes on


def _go_on(decision: Decision, seen: _Seen, attempt: Attempt) -> None:
    run, member = seen.run, str(status(seen.run).get("member", ""))
    gone = _member_gone(seen, member)
    if isinstance(seen.known, Ending):
        _conclude(decision.plan, seen, attempt, seen.known)
    elif gone or (deleting(run) and force_delete(run)):
        _conclude(decision.plan, seen, attempt, Ending(Reason.LOST, gone or "given up because of its annotation"))
    else:
        why = _to_stop(seen)
        wanted = Stop if why is not None else Follow
        decision.request = wanted(member, str(spec(run)["pipeline"]), str(spec(run)["task"]), attempt)
        _write(decision.plan, seen, _state(seen, member, why), [])
        decision.plan.add(Requeue(min(_LOOK_AGAIN_SECONDS, _left(seen) or _LOOK_AGAIN_SECONDS)))


def _member_gone(seen: _Seen, member: str) -> str:
    """Say that the member of an attempt does not exist any more; empty: it does, or that is not known."""
    if seen.pipeline is None:
        return f"Pipeline {spec(seen.run)['pipeline']} was deleted while the run went on"
    if seen.found is None or any(known.name == member for known in seen.members):
        return ""
    return f"member {member} was removed while the run went on"


def _to_stop(seen: _Seen) -> Condition | None:
    """Return how a run ends whose attempt has to be stopped; None: it goes on."""
    run = seen.run
    if spec(run).get("cancel") or deleting(run):
        return Condition(SUCCEEDED, FALSE, "Cancelled", "the run was cancelled")
    if _left(seen) > 0:
        return None
    message = (
        f"not done after {spec(run)['timeoutSeconds']} s; make another run with a longer timeoutSeconds, or look why "
        "the task is slow"
    )
    return Condition(SUCCEEDED, FALSE, "TimedOut", message)


def _left(seen: _Seen) -> float:
    """Return the seconds until a run that has started has to be done, 0: it is too late; without a limit, many."""
    seconds, started = spec(seen.run).get("timeoutSeconds"), status(seen.run).get("startTime")
    if seconds is None or not started:
        return _LONGEST_WAIT_SECONDS
    deadline = datetime.fromisoformat(started) + timedelta(seconds=int(seconds))
    return max((deadline - seen.now).total_seconds(), 0.0)


def _state(seen: _Seen, member: str, stopping: Condition | None) -> Condition:
    unsure = f"; {seen.known.message}" if isinstance(seen.known, Waiting) else ""
    if stopping is not None:
        return Condition(SUCCEEDED, UNKNOWN, "Stopping", f"{stopping.message}: it is being stopped on {member}{unsure}")
    if isinstance(seen.known, Waiting) and seen.known.queued:
        return Condition(SUCCEEDED, UNKNOWN, "Queued", seen.known.message)
    return Condition(SUCCEEDED, UNKNOWN, "Running", f"it runs on {member}{unsure}")


def _conclude(plan: Plan, seen: _Seen, attempt: Attempt, ending: Ending) -> None:
    """Write how the attempt that went on has ended, and with it the run, or when it is repeated."""
    run = seen.run
    last = attempts.ended(attempt, ending, seen.now)
    known = [*attempts.of(run)[:-1], last]
    ended = _verdict(seen, known, ending)
    again = attempts.retry_at(run, known)
    if ended is None and again is not None:
        message = f"attempt {last.number} ended: {_said(ending)}; the next one starts at {timestamp(again)}"
        retrying = Condition(SUCCEEDED, UNKNOWN, "Retrying", message)
        _write(plan, seen, retrying, known, attempts.outcome(ending))
        plan.add(Requeue(min((again - seen.now).total_seconds(), _left(seen))))
        return
    ended = ended or Condition(SUCCEEDED, FALSE, _FAILURES[ending.reason], _failed(known, ending))
    _finish(plan, seen, ended, known, attempts.outcome(ending))


def _verdict(seen: _Seen, known: Sequence[Attempt], ending: Ending) -> Condition | None:
    """Return how the run ends with this attempt whatever its retries; None: they decide."""
    if ending.reason == Reason.SUCCEEDED:
        tried = f" after {known[-1].number} attempts" if known[-1].number > 1 else ""
        return Condition(SUCCEEDED, TRUE, "Complete", f"it succeeded on {status(seen.run)['member']}{tried}")
    stopped = _to_stop(seen)
    if stopped is not None:
        return stopped
    if seen.pipeline is None:
        return Condition(SUCCEEDED, FALSE, "Failed", ending.message)
    if ending.reason == Reason.LOST and spec(seen.run).get("member"):
        return Condition(SUCCEEDED, FALSE, "MemberGone", ending.message)
    return None


def _failed(known: Sequence[Attempt], ending: Ending) -> str:
    tried = f" in attempt {known[-1].number}, the last one" if known[-1].number > 1 else ""
    refused = f"; {ending.denials} accesses were denied, of which status.refusals says more" if ending.denials else ""
    return f"it failed{tried}: {_said(ending)}{refused}"


def _said(ending: Ending) -> str:
    return ending.message or "its program said nothing"


# What has not begun, or waits for its next attempt


def _begin(decision: Decision, seen: _Seen) -> None:
    run = seen.run
    ended = _to_stop(seen) or _impossible(seen)
    if ended is not None:
        _finish(decision.plan, seen, ended, attempts.of(run))
        return
    known = attempts.of(run)
    due = attempts.retry_at(run, known) if known else None
    if due is not None and seen.now < due:
        decision.plan.add(Requeue(min((due - seen.now).total_seconds(), _left(seen))))
        return
    chosen = task_run_members.choose(run, seen.members, seen.inventory)
    if isinstance(chosen, Condition):
        _write(decision.plan, seen, chosen, known)
        decision.plan.add(Requeue(task_run_members.look_again(run, seen.inventory)))
        return
    if FINALIZER not in finalizers(run):
        # A run that is deleted must not leave its task behind. When the finalizer is written, the run comes again.
        decision.plan.add(SetFinalizer(run, present=True))
        return
    attempt = attempts.begun(run, chosen.monitor, seen.now)
    more = {
        "member": chosen.name,
        "instance": spec(run)["task"],
        "startTime": status(run).get("startTime") or timestamp(seen.now),
    }
    running = Condition(SUCCEEDED, UNKNOWN, "Running", f"it starts on {chosen.name}")
    _write(decision.plan, seen, running, [*known, attempt], more)
    decision.plan.add(Requeue(0.0))


def _impossible(seen: _Seen) -> Condition | None:
    """Say why a run can never start; None: it may."""
    run = seen.run
    if seen.pipeline is None:
        return None
    wanted = str(spec(run)["task"])
    if wanted not in references.tasks(seen.pipeline):
        message = f"Pipeline {name(seen.pipeline)} has no task {wanted}; its tasks are in its spec.tasks"
        return Condition(SUCCEEDED, FALSE, "Failed", message)
    task = seen.inventory.find("Task", namespace(run), wanted)
    if task is not None and spec(task).get("run") != "Once":
        message = f"Task {wanted} has run: Always, so members keep it running; a TaskRun needs a task with run: Once"
        return Condition(SUCCEEDED, FALSE, "NotOnce", message)
    return None


# What is written


def _write(
    plan: Plan, seen: _Seen, condition: Condition, known: Sequence[Attempt], more: dict[str, Any] | None = None
) -> None:
    """Write a run's status; without attempts, those that it has."""
    run = seen.run
    rows = [attempts.rendered(attempt) for attempt in (known or attempts.of(run))[-attempts.LISTED :]]
    last = int(rows[-1]["number"]) if rows else 0
    kept = {key: value for key, value in status(run).items() if key in _KEPT}
    if more and ("denials" in more):
        kept = {key: value for key, value in kept.items() if key not in {"exitCode", "signal"}}
    values: dict[str, Any] = {
        **kept,
        **(more or {}),
        "observedGeneration": generation(run),
        "conditions": conditions.render(run, [condition], seen.now),
    }
    if rows:
        values |= {"attempts": rows, "retries": last - 1}
    plan.add(SetStatus(run, WRITER, values))


_KEPT = frozenset({"startTime", "member", "instance", "exitCode", "signal", "denials", "refusals"})


def _finish(
    plan: Plan, seen: _Seen, ended: Condition, known: Sequence[Attempt], more: dict[str, Any] | None = None
) -> None:
    _write(plan, seen, ended, known, {**(more or {}), "completionTime": timestamp(seen.now)})
    _release(plan, seen.run)
    if ended.reason != "Cancelled":
        plan.add(Emit(seen.run, NORMAL if ended.status == TRUE else WARNING, ended.reason, ended.message))
