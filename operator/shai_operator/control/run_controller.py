# SPDX-License-Identifier: BSD-2-Clause
"""The controller of AnalysisRuns: it starts analyses on members and follows them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from shai_operator.control.jobs import CancelledError
from shai_operator.control.sharding import ShardingError, Subject
from shai_operator.monitors.errors import MonitorError
from shai_operator.reconcile import references, results, runs, shares
from shai_operator.reconcile.objects import namespace, spec, uid
from shai_operator.reconcile.results import MemberRun, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Job, Jobs
    from shai_operator.control.loop import Loop
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.sharding import Sharding
    from shai_operator.reconcile.members import Monitor
    from shai_operator.reconcile.objects import Object, Reference
    from shai_operator.reconcile.runs import StartAnalysis

_UNAVAILABLE = 503
PROGRESS_SECONDS = 0.5
"""How long progress may be delayed before it is written: an analysis reports far more often than a status should be
written."""


class PoolMembers(Protocol):
    """Observations of members; implemented by `shai_operator.control.pool_controller.PoolController`."""

    def members(self, pool: str) -> MemberObserver | None:
        """Return the observations of a pool's members, None before the first one."""


@dataclass(frozen=True)
class _Asked:
    """The members that were asked for a run, until their jobs have ended and are forgotten."""

    uid: str
    """The run's: one that is deleted and made anew has the same name."""
    members: set[str] = field(default_factory=set)


class RunController:
    """The controller of AnalysisRuns."""

    def __init__(self, loop: Loop, executor: Executor, jobs: Jobs, pools: PoolMembers, sharding: Sharding) -> None:
        self._sharding = sharding
        self._loop = loop
        self._executor = executor
        self._jobs = jobs
        self._pools = pools
        self._asked: dict[Reference, _Asked] = {}

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one run; when it does not exist any more, end its jobs."""
        run = self._loop.inventory.get(ref)
        asked = self._asked.get(ref)
        if asked is not None and (run is None or uid(run) != asked.uid):
            self._dismiss(ref)  # the run was deleted, and another may have its name by now
            if ref in self._asked:
                return None  # when a job has ended, it adds the name to the queue
        if run is None:
            return None
        decision = runs.reconcile(run, self._members(run), self._loop.inventory, datetime.now(UTC))
        for request in decision.requests:
            if isinstance(request, runs.StartAnalysis):
                self._start(ref, run, request)
            else:
                self._cancel(uid(run), request.member)
        wait = await self._executor.execute(decision.plan)
        if runs.finished(self._loop.inventory.get(ref) or run):
            self._dismiss(ref)
        return wait

    def _members(self, run: Object) -> list[MemberRun]:
        inventory = self._loop.inventory
        pipeline = inventory.find("Pipeline", namespace(run), spec(run)["pipeline"])
        if pipeline is None:
            return []
        name = references.pool(pipeline)
        pool = inventory.find("JailPool", "", name)
        seen = self._pools.members(name)
        own = shares.rows(pool, namespace(run), inventory) if pool else []
        return [self._member(run, str(row["name"]), seen) for row in own]

    def _member(self, run: Object, name: str, seen: MemberObserver | None) -> MemberRun:
        known = None if seen is None else seen.of(name)
        monitor = None if known is None else known.monitor
        bundle = monitor.hash if monitor else ""
        key = _key(uid(run), name)
        job = self._jobs.get(key)
        away = "cannot be reached, of which the JailPool's status says more" if known and known.unreachable else ""
        reason = away or _unready(monitor, spec(run)["pipeline"])
        if job is not None and job.done and _lost(job.error) and known is not None:
            if reason:
                return MemberRun(name, State.RUNNING, bundle)  # it is asked again when it is back
            self._jobs.forget(key)
            job = None
        if job is not None:
            return _followed(name, bundle, job)
        return MemberRun(name, State.UNREADY if reason else State.PENDING, bundle, error=reason)

    def _start(self, ref: Reference, run: Object, wanted: StartAnalysis) -> None:
        inventory = self._loop.inventory
        pipeline = inventory.find("Pipeline", namespace(run), wanted.pipeline)
        seen = self._pools.members(references.pool(pipeline)) if pipeline else None
        if seen is None:
            return  # the next observation of the member reports it

        async def work(job: Job) -> Mapping[str, Any]:
            def tell(progress: Mapping[str, Any]) -> None:
                job.progress = progress
                self._loop.queue.add_after(ref, PROGRESS_SECONDS)

            def wait(why: str) -> None:
                if why != job.waiting:
                    job.waiting = why
                    self._loop.queue.add_after(ref, PROGRESS_SECONDS)

            try:
                if wanted.shards is None:
                    client = seen.client(wanted.member)
                    request = client.analyze(wanted.pipeline, wanted.scope, full=wanted.full, progress=tell)
                else:
                    about = f"AnalysisRun {namespace(run)}/{ref.name}, member {wanted.member}"
                    subject = Subject(namespace(run), wanted.pipeline, seen.endpoint(wanted.member), about)
                    request = self._sharding.analyze(subject, wanted.shards, tell, wait)
                return results.shortened(await job.unless_cancelled(request))
            except MonitorError as error:
                if _lost(error):
                    known = seen.of(wanted.member)  # what was observed before is over
                    known.monitor, known.unreachable = None, str(error)
                    seen.look_now()
                raise

        self._asked.setdefault(ref, _Asked(uid(run))).members.add(wanted.member)
        self._jobs.start(_key(uid(run), wanted.member), work, lambda: self._loop.queue.add(ref))

    def _cancel(self, run: str, member: str) -> None:
        job = self._jobs.get(_key(run, member))
        if job is not None:
            job.cancel.set()

    def _dismiss(self, ref: Reference) -> None:
        """End the jobs of a run, and forget their results."""
        asked = self._asked.get(ref)
        if asked is None:
            return
        for member in list(asked.members):
            key = _key(asked.uid, member)
            self._cancel(asked.uid, member)
            self._jobs.forget(key)
            if not self._jobs.running(key):
                asked.members.remove(member)
        if not asked.members:
            del self._asked[ref]


def _key(run: str, member: str) -> str:
    """Return the key of the job that asks a member for the run with this uid."""
    return f"analysis/{run}/{member}"


def _lost(error: Exception | None) -> bool:
    """Whether the monitor ended, or was not reached: the analysis is over, and has not failed."""
    return isinstance(error, MonitorError) and error.status == _UNAVAILABLE


def _followed(name: str, bundle: str, job: Job) -> MemberRun:
    progress = job.progress or {}
    seen = MemberRun(
        name,
        State.RUNNING,
        bundle,
        phase=progress.get("phase", ""),
        done=progress.get("done", 0),
        total=progress.get("total", 0),
        waiting=job.waiting,
    )
    if not job.done:
        return seen
    seen = replace(seen, waiting="")
    if job.result is not None:
        return replace(seen, state=State.COMPLETE, analysis=job.result)
    return replace(seen, state=State.FAILED, error=_failure(job.error))


def _failure(error: Exception | None) -> str:
    """Say why an analysis failed, as the monitor said it; of another error only the operator's log has the text.

    Authors of pipelines read it: where a monitor is, and why it does not answer, is not for them.
    """
    if error is None:
        return "the operator is being stopped"
    if isinstance(error, MonitorError) and error.unavailable:
        return "its monitor does not answer or is not ready; the operator's log has more"
    told = isinstance(error, (MonitorError, CancelledError, ShardingError))
    return str(error) if told else f"{type(error).__name__}; the operator's log has more"


def _unready(monitor: Monitor | None, pipeline: str) -> str:
    """Say why a member cannot be asked yet; empty when it can."""
    if monitor is None:
        return "its monitor has not answered yet"
    if not monitor.ready:
        more = ", of which the JailPool's status says more" if monitor.reason else ""
        return f"its monitor is not ready{more}"
    if not any(name == pipeline for name, _ in monitor.tasks or ()):
        return f"it does not have pipeline {pipeline} in force yet"
    return ""
