# SPDX-License-Identifier: BSD-2-Clause
"""The controller of Benchmarks: it has members measured, and reports the results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import RefusedError
from shai_operator.control import poolspec
from shai_operator.control.measuring import MeasuringError, Slices, Subject
from shai_operator.reconcile import benchmarks, bundles, releases, sources, turns
from shai_operator.reconcile.benchmarks import Measurement
from shai_operator.reconcile.objects import name, namespace, spec, status, uid
from shai_operator.reconcile.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Job, Jobs
    from shai_operator.control.loop import Loop
    from shai_operator.control.measuring import LoadGenerator
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.control.run_controller import PoolMembers
    from shai_operator.reconcile.actions import Plan
    from shai_operator.reconcile.benchmarks import StartMeasurement, Target
    from shai_operator.reconcile.objects import Object, Reference

PROGRESS_SECONDS = 1.0
"""How long progress may be delayed before it is written to the status."""


@dataclass(frozen=True)
class _Measured:
    """A measurement, until it has ended and is forgotten."""

    uid: str
    """The benchmark's: one that is deleted and made anew has the same name."""
    target: Target
    job: Job


class BenchmarkController:
    """The controller of Benchmarks. ``generators`` are by provider of the pool."""

    def __init__(
        self,
        loop: Loop,
        executor: Executor,
        jobs: Jobs,
        *,
        pools: PoolMembers,
        releases: ReleaseStore,
        generators: Mapping[str, LoadGenerator],
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._jobs = jobs
        self._pools = pools
        self._releases = releases
        self._generators = generators
        self._measured: dict[Reference, _Measured] = {}
        self._starting: dict[Reference, Target] = {}
        """What is about to be measured: the start is being recorded."""
        self._had: dict[tuple[str, str], None] = {}
        """Hosts and namespaces that had a turn there, the longest ago first."""

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one benchmark; when it does not exist any more, end its measurement."""
        benchmark = self._loop.inventory.get(ref)
        measured = self._measured.get(ref)
        if measured is not None and (benchmark is None or uid(benchmark) != measured.uid):
            self._dismiss(ref)  # the benchmark was deleted, and another may have its name by now
            if ref in self._measured:
                return None  # when the measurement has ended, it adds the name to the queue
        if benchmark is None:
            return None
        decision = benchmarks.reconcile(
            benchmark, self._measurement(ref), self._loop.inventory, datetime.now(UTC), self._turns()
        )
        # The start is recorded first, so that a crash after it shows as an interrupted measurement. The turn is taken
        # before that: meanwhile others are reconciled, too.
        if decision.start is not None:
            self._starting[ref] = decision.start.target
        try:
            wait = await self._execute(ref, benchmark, decision.plan)
        finally:
            self._starting.pop(ref, None)
        if decision.cancel:
            self._dismiss(ref)
        elif decision.start is not None:
            self._start(ref, benchmark, decision.start)
        return wait

    async def _execute(self, ref: Reference, benchmark: Object, plan: Plan) -> float | None:
        """Carry out a plan; end a benchmark whose results the API server does not take, or it would never end."""
        measurement = self._measurement(ref)
        try:
            return await self._executor.execute(plan)
        except RefusedError as error:
            if measurement is None or measurement.results is None:
                raise
            unkept = benchmarks.unkept(benchmark, measurement, str(error), datetime.now(UTC))
            return await self._executor.execute(unkept)

    def _start(self, ref: Reference, benchmark: Object, wanted: StartMeasurement) -> None:
        async def work(job: Job) -> Measurement:
            def tell(slices: Slices) -> None:
                if slices != job.progress:
                    job.progress = slices
                    self._loop.queue.add_after(ref, PROGRESS_SECONDS)

            subject = await self._subject(benchmark, wanted.target)
            found = await self._generator(wanted.target).run(subject, wanted.plan, tell, job.cancel)
            progress = job.progress or Slices(0, 0, "")
            return Measurement(
                progress.done, progress.total, progress.message, found.figures, found.table, pool=wanted.target.pool
            )

        job = self._jobs.start(_key(uid(benchmark)), work, lambda: self._loop.queue.add(ref))
        self._measured[ref] = _Measured(uid(benchmark), wanted.target, job)
        turns.taken(self._had, wanted.target.host, namespace(benchmark))

    def _turns(self) -> Turns:
        """Say who measures: also one that was cancelled does until its member is as it was before."""
        measuring = {one.target.host: ref for ref, one in self._measured.items() if not one.job.done}
        starting = {target.host: ref for ref, target in self._starting.items()}
        return Turns({**measuring, **starting}, tuple(self._had))

    def _generator(self, target: Target) -> LoadGenerator:
        provider = str(spec(self._pool(target)).get("provider"))
        if provider not in self._generators:
            raise MeasuringError(
                f"JailPool {target.pool} has provider {provider}, and this operator measures members of pools with "
                f"provider {' or '.join(sorted(self._generators))} only"
            )
        return self._generators[provider]

    async def _subject(self, benchmark: Object, target: Target) -> Subject:
        members = self._pools.members(target.pool)
        monitor = None if members is None else members.of(target.member).monitor
        if monitor is None:
            raise MeasuringError(f"member {target.member} does not answer any more")
        release, _ = bundles.label_parts(monitor.bundle)
        stored = (await self._releases.named([release])).get(release) if release else None
        if stored is None:
            raise MeasuringError(f"member {target.member} has bundle {monitor.bundle!r} in force, which is not kept")
        space, pool = namespace(benchmark), self._pool(target)
        facts = releases.facts(pool, self._loop.inventory, space)
        texts = [source["text"] for source in bundles.Bundle(stored, facts).sources()]
        pipeline = str(spec(benchmark)["pipeline"])
        row = _row(pool, target.member)
        return Subject(description(pool, target.member, pipeline), texts, pool, row, space)

    def _pool(self, target: Target) -> Object:
        pool = self._loop.inventory.find("JailPool", "", target.pool)
        if pool is None:
            raise MeasuringError(f"JailPool {target.pool} was deleted")
        return pool

    def _measurement(self, ref: Reference) -> Measurement | None:
        measured = self._measured.get(ref)
        if measured is None:
            return None
        job = measured.job
        if job.result is not None:
            found: Measurement = job.result
            return found
        progress = job.progress or Slices(0, 0, "")
        error = _cause(job, measured.uid) if job.done else ""
        return Measurement(progress.done, progress.total, progress.message, error=error, pool=measured.target.pool)

    def _dismiss(self, ref: Reference) -> None:
        """End the measurement of a benchmark, and forget its results."""
        measured = self._measured.get(ref)
        if measured is None:
            return
        measured.job.cancel.set()
        self._jobs.forget(_key(measured.uid))
        if measured.job.done:
            del self._measured[ref]


def _cause(job: Job, benchmark: str) -> str:
    """Say why a job has no result; only what was written for it goes into a status."""
    if job.error is None:
        return "the operator is being stopped"
    if isinstance(job.error, MeasuringError):
        return str(job.error)
    return f"{type(job.error).__name__}; the operator's log has more (look there for {_key(benchmark)})"


def _key(benchmark: str) -> str:
    """Return the key of the job that measures for the benchmark with this uid."""
    return f"benchmark/{benchmark}"


def _row(pool: Object, member: str) -> Mapping[str, Any]:
    """Return a member's entry in the status of its pool."""
    return next((row for row in status(pool).get("members") or () if row["name"] == member), {})


def description(pool: Object, member: str, pipeline: str) -> dict[str, Any]:
    """Describe a member in the form that ``loadgen.stacks.member`` reads: the paths of its installation on the host."""
    row = _row(pool, member)
    if not row.get("image") or not row.get("address"):
        raise MeasuringError(f"member {member} of JailPool {name(pool)} is not installed")
    place = PurePosixPath(poolspec.directory(pool)) / member
    store = spec(pool).get("keyValue") or {}
    managed = store.get("mode") == "Managed"
    own = {
        "IMAGE": str(place.parent / "images" / row["image"]),
        "DATA": str(place / "data"),
        "MEMBER_ADDRESS": row["address"],
        "REDIS_SOCKET": str(place / "run" / "store.sock"),
    }
    variables = {}
    for variable in spec(pool).get("variables") or ():
        value = str(variable.get("value") or "")
        for known, replacement in own.items():
            value = value.replace(f"$({known})", replacement)
        variables[variable["name"]] = value
    return {
        "name": member,
        "pipeline": pipeline,
        "image": own["IMAGE"],
        "data": own["DATA"],
        "monitor": {"socket": str(place / "run" / "monitor.sock")},
        "store": own["REDIS_SOCKET"] if managed else "",
        "seed": str(store.get("seed") or "") if managed else "",
        "variables": {**variables, **own},
        "runtimes": {runtime["name"]: list(runtime["paths"]) for runtime in spec(pool).get("runtimes") or ()},
        "sources": list(sources.listed(pool)),
    }
