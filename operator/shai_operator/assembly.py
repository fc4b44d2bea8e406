# SPDX-License-Identifier: BSD-2-Clause
"""Assembles the operator and runs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING, Any

import kopf

from shai_operator.cluster.client import Cluster
from shai_operator.control import authority, load_jobs, sharding
from shai_operator.control.analysis_controller import AnalysisController
from shai_operator.control.benchmark_controller import BenchmarkController
from shai_operator.control.definition_controller import DefinitionController
from shai_operator.control.executor import Executor
from shai_operator.control.freshness import Freshness
from shai_operator.control.health import Health, Leading
from shai_operator.control.jobs import Jobs
from shai_operator.control.kinds import Kinds
from shai_operator.control.load_jobs import LoadJobs
from shai_operator.control.loop import Loop
from shai_operator.control.measuring import LoadGenerator, LocalLoadGenerator
from shai_operator.control.member_reading_controller import MemberReadingController
from shai_operator.control.pool_controller import PoolController
from shai_operator.control.release_store import ReleaseStore
from shai_operator.control.remote_measuring import RemoteLoadGenerator
from shai_operator.control.replica import Replica
from shai_operator.control.run_controller import RunController
from shai_operator.control.scrape_directory import ScrapeDirectory
from shai_operator.control.scraping import Scraping, StandbyTargets
from shai_operator.control.services import Services
from shai_operator.control.sharding import Sharding
from shai_operator.control.stored import Stored
from shai_operator.control.task_run_controller import TaskRunController
from shai_operator.control.task_runner import TaskRunner
from shai_operator.control.verdicts import Verdicts
from shai_operator.control.worker_jobs import WorkerJobs
from shai_operator.handlers import login, watch, watching
from shai_operator.handlers.admission import Admission
from shai_operator.metrics.samples import Snapshot, objects
from shai_operator.monitors import program
from shai_operator.monitors.validator import Validator
from shai_operator.providers.bhyve import BhyveProvider
from shai_operator.providers.linux import LinuxProvider
from shai_operator.providers.local import LocalProvider
from shai_operator.providers.playbooks import Playbooks
from shai_operator.reconcile import policies
from shai_operator.reconcile.dependents import DEFINITIONS
from shai_operator.reconcile.objects import Inventory
from shai_operator.reconcile.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from shai_operator.control.replica import Held
    from shai_operator.control.settings import Settings

_LOGGER = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Run a replica of the operator until a signal, then stop everything that it started."""
    stop = asyncio.Event()
    _on_signals(stop)
    cluster = Cluster()
    try:
        async with Validator(settings.shai, settings.runtime) as validator:
            health = Health(
                settings.lag_seconds, await program.version(settings.shai), StandbyTargets(cluster, settings.cluster)
            )
            if settings.scrape is not None:
                await asyncio.to_thread(ScrapeDirectory(settings.scrape).check)
            async with health.serve(*settings.probes) as port:
                replica = Replica(
                    settings,
                    cluster,
                    health,
                    lambda held: _lead(settings, held, validator, health, port=port, stop=stop),
                )
                await _until(stop, replica.run(Admission(validator, Stored(cluster)).application))
    finally:
        await cluster.close()
    _LOGGER.info("stopped")


def _on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Work until the event is set, then let the work end in good order."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def _lead(
    settings: Settings, held: Held, validator: Validator, health: Health, *, port: int, stop: asyncio.Event
) -> None:
    """Do what only the replica that leads does, until cancelled."""
    cluster, root = held.cluster, held.root
    seal = Seal(root.key.encode())
    inventory = Inventory(lambda revision: policies.genuine(revision, seal))
    executor = Executor(cluster, inventory)
    loop = Loop(inventory, executor)
    releases = ReleaseStore(cluster, settings.namespace)
    verdicts = Verdicts(loop, validator, releases)
    playbooks = Playbooks(workers=settings.workers)
    jobs = Jobs()
    runner = TaskRunner(loop, executor)
    bhyve = BhyveProvider(playbooks, root)
    services = Services(
        settings=settings,
        loop=loop,
        cluster=cluster,
        executor=executor,
        verdicts=verdicts,
        kinds=Kinds(cluster, lambda: loop.seen),
        releases=releases,
        leases=held.leases,
        jobs=jobs,
        providers={
            "local": LocalProvider(playbooks, root),
            "linux": LinuxProvider(playbooks, root, python=settings.host_python),
            "bhyve": bhyve,
        },
        surveyors={"bhyve": bhyve},
        tls=authority.ClientTLS(root, "shai-operator", settings.runtime),
        runner=runner,
    )
    workers = WorkerJobs(cluster, seal)
    pools = PoolController(services)
    scraping = Scraping(settings, cluster, inventory, root)
    snapshot = _snapshots(inventory, pools, scraping, await program.version(settings.shai))
    near = LocalLoadGenerator(
        settings.runtime,
        scrape=settings.scrape,
        cluster=settings.cluster,
        jobs=LoadJobs(workers, settings.load_image, settings.load_host),
    )
    generators: dict[str, LoadGenerator] = {
        "local": near,
        **{
            provider: RemoteLoadGenerator(near, services.providers[provider], services, root)
            for provider in ("linux", "bhyve")
        },
    }
    loop.controllers = {
        DEFINITIONS: verdicts,
        "JailPool": pools,
        **dict.fromkeys(
            ("Policy", "FactSource", "Task", "Pipeline", "Principal"),
            DefinitionController(loop, verdicts, executor, seal),
        ),
        "OfflineAnalysis": AnalysisController(loop, executor),
        "AnalysisRun": RunController(loop, executor, jobs, pools, Sharding(cluster, workers, settings, root)),
        "TaskRun": TaskRunController(loop, executor, jobs, pools, runner),
        "MemberReading": MemberReadingController(loop, executor, jobs, pools),
        "Benchmark": BenchmarkController(loop, executor, jobs, pools=pools, releases=releases, generators=generators),
    }
    freshness = Freshness(cluster, loop, settings.compare_seconds)
    chosen, registry = watching.settings(), kopf.OperatorRegistry()
    login.register(registry)
    watch.register(registry, loop)
    watch.register_webhooks(registry, chosen, held.registration)
    with health.lead(Leading(freshness, scraping, snapshot)):
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(loop.run(), name="loop")
                tasks.create_task(freshness.run(), name="freshness")
                tasks.create_task(scraping.lead(port), name="scraping")
                tasks.create_task(workers.keep_swept(_with_workers(settings)), name="left Jobs")
                tasks.create_task(held.registration.keep(), name="registration")
                tasks.create_task(
                    watching.run(
                        registry, chosen, lambda: watch.know_existing(cluster, loop), lambda: _on_signals(stop)
                    ),
                    name="watches",
                )
        finally:
            await jobs.close()
            await playbooks.close()
            await pools.close()


def _with_workers(settings: Settings) -> list[str]:
    """Return the namespaces in which this operator makes Jobs. It has rights in no others."""
    images = {sharding.NAMESPACE: settings.shard_image, load_jobs.NAMESPACE: settings.load_image}
    return [space for space, image in images.items() if image]


def _snapshots(inventory: Inventory, pools: PoolController, scraping: Scraping, version: str) -> Callable[[], Snapshot]:
    """Return what takes a snapshot for a scrape."""

    def take() -> Snapshot:
        return Snapshot(
            objects=objects(inventory),
            tracks=pools.tracks(),
            rollouts=pools.ended_rollouts(),
            version=version,
            certificate_ends=scraping.certificate_ends,
        )

    return take
