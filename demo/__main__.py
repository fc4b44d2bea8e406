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
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from demo import kubernetes, overlay, stages, workspace
from demo.kubernetes import Cluster, KubernetesError
from demo.progress import Progress
from loadgen.datasets import corpus
from loadgen.datasets.sizes import DATASETS
from loadgen.errors import LoadgenError
from loadgen.plan import PLANS
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.plan import Plan

STEPS = 7
NAMESPACE, OPERATORS_NAMESPACE = "default", "shai-system"
_ROOT = Path(__file__).resolve().parent.parent
_PLAIN_WIDTH = 160
_RELEASE_SECONDS = 300


def main(arguments: Sequence[str] | None = None, root: Path = _ROOT) -> int:
    """Run the demo; 0 when everything was shown, 1 when something failed, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=PLANS, default="quick")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus, the order of slices and the queries")
    parser.add_argument("--out", type=Path, default=root / "out" / "demo")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    place = workspace.Workspace(root, options.out.resolve(), options.size)
    plan = dataclasses.replace(PLANS[options.size], seed=options.seed)
    started = time.monotonic()
    return _guarded(console, lambda: _run(place, plan, console, keep=options.keep), started)


def _run(place: workspace.Workspace, plan: Plan, console: Console, *, keep: bool) -> None:
    progress = Progress(console, STEPS)
    with place.lock(), Supervisor() as supervisor:
        with progress.step(1, "corpus") as tell:
            place.prepare()
            workspace.check_ports([(overlay.HOST, overlay.PORT)])
            stages.make_dataset(place, DATASETS[place.size], plan.seed, supervisor, tell)
        with progress.step(2, "cluster, custom resources, operator") as tell:
            cluster = _cluster(place, supervisor)
            cluster.run("apply", "--server-side", "--force-conflicts", "-k", str(place.root / "crds"))
            cluster.run("wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
            with contextlib.suppress(KubernetesError):
                cluster.run("create", "namespace", OPERATORS_NAMESPACE)
            stages.start_operator(place, cluster.kubeconfig, supervisor)
            tell(f"KUBECONFIG={cluster.kubeconfig}")
        with _released(cluster, console):
            _show(place, plan, cluster, supervisor, progress, keep=keep)


def _show(
    place: workspace.Workspace,
    plan: Plan,
    cluster: Cluster,
    supervisor: Supervisor,
    progress: Progress,
    *,
    keep: bool,
) -> None:
    console = progress.console
    with progress.step(3, "kubectl apply -k: pool, policies, tasks, pipeline, analysis, benchmark") as tell:
        directory = overlay.write(
            place.output / "manifests",
            base=place.examples,
            plan=plan,
            data=place.data,
            members=place.members,
            java=corpus.find_java(),
        )
        stages.finish_removal(cluster, tell)
        cluster.run("apply", "-k", str(directory))
        tell(str(directory))
    with progress.step(4, "the operator installs the member, indexes, analyses and starts Sys-E") as tell:
        stages.await_pipeline(cluster, tell)
        tell("the pipeline is in force")
    stages.show_analysis(cluster, console)
    with progress.step(5, f"benchmark: {plan.slices} slices, about {plan.seconds / 60:.0f} min") as tell:
        measured = stages.await_benchmark(cluster, plan.seconds, tell)
    stages.show_benchmark(cluster, measured, console)
    people = stages.load_people(place)
    with progress.step(6, "what enforcement stops") as tell:
        lines = stages.enforce(cluster, place, supervisor, tell)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if keep:
        for line in stages.suggestions(cluster, place, people):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        while True:
            signal.pause()


def _cluster(place: workspace.Workspace, supervisor: Supervisor) -> Cluster:
    program = place.root / "build" / "bin" / "devcluster"
    given = os.environ.get("KUBECONFIG")
    if given:
        return Cluster(program, Path(given).resolve(), NAMESPACE)
    log = place.logs / "devcluster.log"
    kubeconfig = kubernetes.own_cluster(program, place.output / "devcluster", supervisor, log)
    return Cluster(program, kubeconfig, NAMESPACE)


@contextlib.contextmanager
def _released(cluster: Cluster, console: Console) -> Iterator[None]:
    """Give back what was installed on this machine, whatever happens; it would outlive the demo."""
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        console.print(f"[{STEPS}/{STEPS}] the operator removes the pool's member", markup=False, highlight=False)
        cluster.run(
            "delete", "benchmark,offlineanalysis,pipeline,jailpool", "--selector=", "--all",
            f"--timeout={_RELEASE_SECONDS}s",
        )  # fmt: skip


def _guarded(console: Console, run: Callable[[], None], started: float) -> int:
    try:
        run()
    except KeyboardInterrupt:
        console.print("Interrupted; every process has been ended.")
        return 130
    except (LoadgenError, OSError) as error:
        console.print(f"demo: {error}", style="bold red", markup=False, soft_wrap=True)
        return 1
    console.print(f"Done in {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
