# SPDX-License-Identifier: BSD-2-Clause
"""The controller of TaskRuns: it has members start tasks, follows them, and stops them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.control.jobs import CancelledError
from shai_operator.monitors import reading
from shai_operator.monitors.errors import MonitorError
from shai_operator.reconcile import attempts, references, shares, task_runs
from shai_operator.reconcile.attempts import Ending, Reason
from shai_operator.reconcile.objects import namespace, spec, status
from shai_operator.reconcile.task_run_members import Member
from shai_operator.reconcile.task_runs import Follow, Stop, Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Job, Jobs
    from shai_operator.control.loop import Loop
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.run_controller import PoolMembers
    from shai_operator.control.task_runner import TaskRunner
    from shai_operator.monitors.client import MonitorClient
    from shai_operator.reconcile.members import Monitor
    from shai_operator.reconcile.objects import Object, Reference

_NOT_FOUND, _CONFLICT, _PRECONDITION_FAILED = 404, 409, 412
_INTERRUPTED = (
    "the member's monitor has started anew, which ends its tasks; the attempt counts even if it had not begun"
)


class TaskRunController:
    """The controller of TaskRuns."""

    def __init__(self, loop: Loop, executor: Executor, jobs: Jobs, pools: PoolMembers, runner: TaskRunner) -> None:
        self._loop = loop
        self._executor = executor
        self._jobs = jobs
        self._pools = pools
        self._runner = runner

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one run; tell who waits for it when it has ended or does not exist any more."""
        run = self._loop.inventory.get(ref)
        wait = None if run is None else await self._step(ref, run)
        self._runner.look(ref)
        return wait

    async def _step(self, ref: Reference, run: Object) -> float | None:
        attempt = attempts.active(run)
        key = "" if attempt is None else f"task run/{attempts.identity(run, attempt)}"
        job = self._jobs.get(key)
        known = job.result if job is not None and job.done else None
        if job is not None and job.done and known is None:
            known = Waiting("asking its member failed; the operator's log has more")
        decision = task_runs.reconcile(run, self._members(run), known, self._loop.inventory, datetime.now(UTC))
        wait = await self._executor.execute(decision.plan)
        if job is not None and job.done:
            self._jobs.forget(key)  # what it has found is written
        if decision.request is not None and attempt is not None:
            self._ask(ref, run, decision.request, key)
        return wait

    def _ask(self, ref: Reference, run: Object, wanted: Follow | Stop, key: str) -> None:
        """Start the request; while another one goes on for the attempt, that one ends first."""
        running = self._jobs.get(key)
        if running is not None and not running.done:
            if isinstance(wanted, Stop) and running.progress != Stop.__name__:
                running.cancel.set()  # it no longer waits for the end; then the attempt is reconciled again
            return
        pipeline = self._loop.inventory.find("Pipeline", namespace(run), wanted.pipeline)
        seen = self._pools.members(references.pool(pipeline)) if pipeline else None
        if seen is None:
            return  # the next observation of the members comes soon
        identity = attempts.identity(run, wanted.attempt)

        async def work(job: Job) -> Ending | Waiting:
            job.progress = type(wanted).__name__
            try:
                return await _told(job, seen.client(wanted.member), wanted, identity)
            except MonitorError as error:
                return _refused(error)
            except CancelledError:
                return Waiting("it is to be stopped")

        self._jobs.start(key, work, lambda: self._loop.queue.add(ref))

    def _members(self, run: Object) -> Sequence[Member] | None:
        inventory = self._loop.inventory
        pipeline = inventory.find("Pipeline", namespace(run), spec(run)["pipeline"])
        if pipeline is None:
            return None
        called = references.pool(pipeline)
        pool = inventory.find("JailPool", "", called)
        if pool is None:
            return ()
        if status(pool).get("members") is None:
            return None
        seen = self._pools.members(called)
        # Members of other namespaces may have a pipeline and a task of the same names in force.
        own = shares.rows(pool, namespace(run), inventory)
        return [_member(run, str(row["name"]), seen, leaving=bool(row.get("drainingSince"))) for row in own]


def _member(run: Object, name: str, seen: MemberObserver | None, *, leaving: bool) -> Member:
    known = None if seen is None else seen.of(name)
    monitor = None if known is None else known.monitor
    if leaving:
        return Member(name, "it is being removed")
    if known is not None and known.unreachable:
        return Member(name, "cannot be reached, of which the JailPool's status says more")
    return Member(name, _unready(monitor, run), monitor.started if monitor else "")


def _unready(monitor: Monitor | None, run: Object) -> str:
    """Say why a member cannot be asked yet; empty when it can. Authors read it: it names no host."""
    if monitor is None:
        return "its monitor has not answered yet"
    if not monitor.ready:
        return "its monitor is not ready, of which the JailPool's status says more"
    if (spec(run)["pipeline"], spec(run)["task"]) not in (monitor.tasks or {}):
        return f"it does not have task {spec(run)['task']} of Pipeline {spec(run)['pipeline']} in force yet"
    return ""


async def _told(job: Job, client: MonitorClient, wanted: Follow | Stop, identity: str) -> Ending | Waiting:
    """Ask a member for an attempt, and return how it ended."""
    place = wanted.pipeline, wanted.task, identity, wanted.attempt.monitor
    if isinstance(wanted, Stop):
        run = await client.run("DELETE", *place)
        return reading.ending(run) or Waiting("its processes are being ended")
    try:
        await client.run("PUT", *place)  # not cut short: it would be unknown whether the attempt has begun
    except MonitorError as error:
        if error.status != _CONFLICT:
            raise
        return await _kept_from_starting(client, place, error)
    run = await job.unless_cancelled(client.run("GET", *place))
    return reading.ending(run) or Waiting("its member says that it goes on")


async def _kept_from_starting(
    client: MonitorClient, place: tuple[str, str, str, str], refusal: MonitorError
) -> Ending | Waiting:
    """Return how an attempt ended that did not start, or that another run goes on in its place."""
    try:
        run: dict[str, Any] = await client.run("GET", *place)
    except MonitorError as error:
        if error.status != _NOT_FOUND:
            raise
        return Waiting(f"the run waits: {refusal}", queued=True)
    return reading.ending(run) or Waiting("its member says that it goes on")


def _refused(error: MonitorError) -> Ending | Waiting:
    """Return what a refusal says about the attempt. Where a monitor is, is not for authors."""
    if error.unavailable:
        return Waiting("its monitor does not answer or is not ready, of which the JailPool's status says more")
    if error.status == _PRECONDITION_FAILED:
        return Ending(Reason.INTERRUPTED, _INTERRUPTED)
    if error.status == _NOT_FOUND:
        return Ending(Reason.STOPPED, "the member does not have the task in force any more")
    return Ending(Reason.FAILED, str(error))
