# SPDX-License-Identifier: BSD-2-Clause
"""Assembles the operator and runs it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import kopf

from shai_operator.cluster.client import Cluster
from shai_operator.control import authority
from shai_operator.control.analysis_controller import AnalysisController
from shai_operator.control.benchmark_controller import BenchmarkController
from shai_operator.control.definition_controller import DefinitionController
from shai_operator.control.executor import Executor
from shai_operator.control.freshness import Freshness
from shai_operator.control.health import Health
from shai_operator.control.jobs import Jobs
from shai_operator.control.kinds import Kinds
from shai_operator.control.leases import Leases
from shai_operator.control.load_jobs import LoadJobs
from shai_operator.control.loop import Loop
from shai_operator.control.measuring import LoadGenerator, LocalLoadGenerator
from shai_operator.control.pool_controller import PoolController
from shai_operator.control.release_store import ReleaseStore
from shai_operator.control.remote_measuring import RemoteLoadGenerator
from shai_operator.control.run_controller import RunController
from shai_operator.control.scrapes import Scrapes
from shai_operator.control.scraping import Scraping
from shai_operator.control.services import Services
from shai_operator.control.task_run_controller import TaskRunController
from shai_operator.control.task_runner import TaskRunner
from shai_operator.control.verdicts import Verdicts
from shai_operator.handlers import admission, login, watch
from shai_operator.metrics.samples import Snapshot, objects
from shai_operator.monitors import program
from shai_operator.monitors.validator import Validator
from shai_operator.providers.bhyve import BhyveProvider
from shai_operator.providers.linux import LinuxProvider
from shai_operator.providers.local import LocalProvider
from shai_operator.providers.playbooks import Playbooks
from shai_operator.reconcile import policies
from shai_operator.reconcile.dependents import NAMESPACE
from shai_operator.reconcile.objects import Inventory
from shai_operator.reconcile.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.control.settings import Settings
    from shai_operator.providers.authority import Identity

_LOGGER = logging.getLogger(__name__)

WATCH_SECONDS = 300
"""A watch is renewed after this time, even if it seems to work."""

INACTIVITY_SECONDS = 90
_NOT_FOUND, _AGAIN_SECONDS = 404, 1.0


async def run(settings: Settings) -> None:
    """Run the operator until a signal, then stop everything that it started."""
    cluster = Cluster()
    try:
        async with Validator(settings.shai, settings.runtime) as validator:
            await _run(settings, cluster, validator)
    finally:
        await cluster.close()


async def _run(settings: Settings, cluster: Cluster, validator: Validator) -> None:
    root = await authority.load(cluster, settings.namespace)
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
        kinds=Kinds(cluster),
        releases=releases,
        leases=Leases(cluster, settings.namespace, settings.identity),
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
    pools = PoolController(services)
    scraping = Scraping(settings, cluster, inventory, root)
    scrapes = Scrapes(_snapshots(inventory, pools, scraping, await program.version(settings.shai)))
    near = LocalLoadGenerator(
        settings.runtime,
        scrape=settings.scrape,
        cluster=settings.cluster,
        jobs=LoadJobs(cluster, settings.load_image, settings.load_host),
    )
    generators: dict[str, LoadGenerator] = {
        "local": near,
        **{
            provider: RemoteLoadGenerator(near, services.providers[provider], services, root)
            for provider in ("linux", "bhyve")
        },
    }
    loop.controllers = {
        NAMESPACE: verdicts,
        "JailPool": pools,
        **dict.fromkeys(
            ("Policy", "FactSource", "Task", "Pipeline", "Principal"),
            DefinitionController(loop, verdicts, executor, seal),
        ),
        "OfflineAnalysis": AnalysisController(loop, executor),
        "AnalysisRun": RunController(loop, executor, jobs, pools),
        "TaskRun": TaskRunController(loop, executor, jobs, pools, runner),
        "Benchmark": BenchmarkController(loop, executor, jobs, pools=pools, releases=releases, generators=generators),
    }
    try:
        await _serve(settings, cluster, loop, validator, root, scrapes=scrapes, scraping=scraping)
    finally:
        await jobs.close()
        await playbooks.close()
        await pools.close()


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


async def _serve(
    settings: Settings,
    cluster: Cluster,
    loop: Loop,
    validator: Validator,
    root: Identity,
    *,
    scrapes: Scrapes,
    scraping: Scraping,
) -> None:
    """Watch, admit and answer probes until a signal."""
    tls = authority.ServerTLS(root, settings.webhook_host, settings.runtime)
    freshness = Freshness(cluster, loop, settings.compare_seconds)
    ready = asyncio.Event()
    health = Health(freshness, ready, settings.lag_seconds, scrapes=scrapes, scraping=scraping)
    registry = kopf.OperatorRegistry()
    login.register(registry)
    watch.register(registry, loop)
    admission.register(registry, validator, loop.inventory)
    async with health.serve(*settings.probes) as port:
        await scraping.begin(port)
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(loop.run(), name="loop"),
                tasks.create_task(health.pulse(), name="pulse"),
                tasks.create_task(freshness.run(), name="freshness"),
                tasks.create_task(tls.renew(), name="renew"),
                tasks.create_task(scraping.run(), name="scraping"),
            ]
            await _watch(registry, _kopf(settings, cluster, tls, ready))
            for task in background:
                task.cancel()
    _LOGGER.info("stopped")


async def _watch(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings) -> None:
    """Have kopf watch until a signal; kopf gives up when a kind's definition is deleted, and is then started again."""
    while True:
        try:
            await kopf.operator(registry=registry, settings=settings, clusterwide=True, standalone=True)
        except Exception as error:
            if getattr(error, "status", None) != _NOT_FOUND:  # kopf's errors are not public
                raise
            _LOGGER.warning("a kind is no longer served; watching again: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            return


def _kopf(
    settings: Settings, cluster: Cluster, tls: authority.ServerTLS, ready: asyncio.Event
) -> kopf.OperatorSettings:
    chosen = kopf.OperatorSettings()
    host, port = settings.webhooks
    chosen.admission.server = admission.Server(
        cluster,
        admission.Webhooks(
            addr=host,
            port=port,
            host=settings.webhook_host,
            cadata=tls.authority.encode(),
            certfile=tls.file,
            pkeyfile=tls.file,
        ),
        # kopf's own flag is set before it serves admission: what is applied then would be refused, or not be checked.
        ready,
    )
    chosen.posting.enabled = False  # cluster/events.py records the events
    chosen.watching.server_timeout = WATCH_SECONDS
    chosen.watching.client_timeout = WATCH_SECONDS + 10
    chosen.watching.inactivity_timeout = INACTIVITY_SECONDS
    chosen.scanning.disabled = False
    chosen.process.ultimate_exiting_timeout = 30
    return chosen
