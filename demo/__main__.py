# SPDX-License-Identifier: BSD-2-Clause
"""Sys-E under enforcement, run by Kubernetes: from an empty machine to the overhead table.

python -m demo --size quick [--keep]

KUBECONFIG names the cluster to use; without it, the demo runs one of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from demo import current, kubernetes, machine, overlay, prometheus, results, stages, texts, workspace
from demo.kubernetes import Cluster
from demo.progress import Progress
from loadgen.datasets.sizes import DATASETS
from loadgen.errors import LoadgenError
from loadgen.plan import PLANS
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from demo.prometheus import Server
    from demo.workspace import Workspace
    from loadgen.plan import Plan

STEPS = 8
_ROOT = Path(__file__).resolve().parent.parent
_FAILED, _INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None, root: Path = _ROOT) -> int:
    """Run the demo; the exit status is 0 after success, 1 after a failure, 130 after an interrupt."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=PLANS, default="quick", help="how much data, and how long it is measured")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus, the order of slices and the queries")
    parser.add_argument("--out", type=Path, default=workspace.default_output(root), help="where it writes")
    options = parser.parse_args(arguments)
    os.umask(0o022)  # tasks run as other users, and read the corpus
    console = Console(width=None if sys.stdout.isatty() else texts.WIDTH)
    place = workspace.Workspace(root, options.out.resolve(), options.size)
    plan = dataclasses.replace(PLANS[options.size], seed=options.seed)
    try:
        conclusion = _run(place, plan, console, keep=options.keep)
    except KeyboardInterrupt:
        texts.say(console, ["Interrupted: what the demo had started is ended, what it had installed is removed."])
        return _INTERRUPTED
    except (LoadgenError, OSError) as error:
        console.print(f"demo: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        return _FAILED
    texts.say(console, conclusion)
    return 0


@dataclass(frozen=True)
class _Run:
    """What the steps of a run work on."""

    place: Workspace
    plan: Plan
    cluster: Cluster
    supervisor: Supervisor
    progress: Progress
    prometheus: Server | None
    """None if this machine has no Prometheus."""


def _run(place: Workspace, plan: Plan, console: Console, *, keep: bool) -> list[str]:
    """Run all steps; return the text to print at the end."""
    started = time.monotonic()
    machine.check_root()
    progress = Progress(console, STEPS)
    with place.lock(), Supervisor() as supervisor:
        with progress.step(1, "make documents and users") as step:
            place.prepare()
            machine.check_enforcement(place.shai)
            machine.check_ports([*((overlay.HOST, port) for port in overlay.ports(place.examples)), prometheus.ADDRESS])
            step.outcome = stages.make_dataset(place, DATASETS[place.size], plan.seed, supervisor, step.tell)
        with progress.step(2, "start the cluster, the operator and Prometheus") as step:
            scrape = prometheus.prepare(place) if prometheus.is_installed() else None
            step.tell("starting the cluster")
            cluster = _cluster(place, supervisor)
            step.outcome = stages.install(place, cluster, scrape, supervisor, step.tell)
            step.tell("starting Prometheus")
            server = prometheus.start(place, supervisor) if scrape else None
        if server is None:
            texts.say(console, [texts.NO_PROMETHEUS])
        with _removed_at_the_end(cluster, place, progress):
            conclusion = _show(_Run(place, plan, cluster, supervisor, progress, server), keep=keep)
    return [f"Done in {time.monotonic() - started:.0f} s.", *conclusion]


def _show(run: _Run, *, keep: bool) -> list[str]:
    """Run the steps that the member is needed for; return the text to print when it is removed."""
    cluster, place, console = run.cluster, run.place, run.progress.console
    with run.progress.step(3, "apply the example: pool, policies, tasks, pipeline, benchmark") as step:
        step.outcome = stages.apply(place, run.plan, cluster, step.tell)
    with run.progress.step(4, "install a member, index, analyse, start the search service") as step:
        stages.await_pipeline(cluster, step.tell)
        step.outcome = "the search service runs under enforcement"
    texts.say(console, texts.analysis(stages.latest_analysis(cluster)))
    with run.progress.step(5, f"measure what enforcement costs, about {max(run.plan.seconds / 60, 1):.0f} min") as step:
        measured = stages.await_benchmark(cluster, run.plan.seconds, step.tell)
        step.outcome = f"{run.plan.slices} slices measured"
    table, figures = texts.benchmark(cluster, measured)
    texts.say(console, table)
    with run.progress.step(6, "break the search engine and try to leak a private document") as step:
        found = stages.verify(cluster, place, run.supervisor, step.tell)
        step.outcome = "leaked in mode baseline, stopped in mode shai"
    texts.say(console, texts.leak(found))
    with run.progress.step(7, "write the report") as step:
        step.outcome = _report(run, found, step.tell)
    if not keep:
        return texts.conclusion(figures, found, texts.next_commands(place))
    things = [*texts.links(place, run.prometheus), *texts.things_to_try(cluster, place)]
    texts.say(console, texts.conclusion(figures, found, things))
    scrape = place.scrape if run.prometheus else None
    with current.announced(place, stages.socket(place), scrape, stages.describe_member(cluster, place)):
        _until_interrupted(cluster)
    return []


def _report(run: _Run, found: dict[str, Any], tell: Callable[[str], None]) -> str:
    results.write(run.place, run.cluster, found, run.prometheus)
    if run.prometheus is None:
        return str(run.place.report)
    tell("running the queries of the dashboards")
    return f"{run.place.report}; {results.verify_panels(run.place, run.prometheus)}"


def _cluster(place: Workspace, supervisor: Supervisor) -> Cluster:
    given = os.environ.get("KUBECONFIG")
    if given:
        return Cluster(place.devcluster, Path(given).resolve(), overlay.NAMESPACE, supervisor.check)
    log = place.logs / "devcluster.log"
    kubeconfig = kubernetes.own_cluster(place.devcluster, place.output / "devcluster", supervisor, log)
    return Cluster(place.devcluster, kubeconfig, overlay.NAMESPACE, supervisor.check)


def _until_interrupted(cluster: Cluster) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            cluster.check()
            time.sleep(1)


@contextlib.contextmanager
def _removed_at_the_end(cluster: Cluster, place: Workspace, progress: Progress) -> Iterator[None]:
    """Remove everything that was installed on this machine, in any case, because it would outlive the demo."""
    failure: LoadgenError | OSError | None = None
    try:
        yield
    except (LoadgenError, OSError) as error:
        failure = error
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        try:
            with progress.step(STEPS, "remove what was installed on this machine") as step:
                step.outcome = stages.remove(cluster, place, step.tell)
        except LoadgenError as error:
            if failure is not None:
                raise LoadgenError(f"{failure}\n{error}") from failure
            raise


if __name__ == "__main__":
    sys.exit(main())
