# SPDX-License-Identifier: BSD-2-Clause
"""What the demo does and shows, step by step. Each step can be watched with kubectl as well."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo import kubernetes, overlay, workspace
from demo.kubernetes import condition
from loadgen.datasets import corpus, population
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.stacks.member import Member
from loadgen.stacks.monitor import Monitor
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import ProcessFailedError, tail
from loadgen.verifying import checks, verification

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from demo.kubernetes import Cluster
    from loadgen.datasets.population import Population
    from loadgen.datasets.sizes import Dataset
    from loadgen.stacks.supervisor import Supervisor
    from loadgen.verifying.checks import Document

_PROVISION_SECONDS = 900.0
_REMOVAL_SECONDS = 150
_CHANGE_SECONDS = 300.0
_MEASURE_MARGIN_SECONDS = 900.0


def make_dataset(
    place: workspace.Workspace, wanted: Dataset, seed: int, supervisor: Supervisor, tell: Callable[[str], None]
) -> None:
    """Make the corpus, its people and their profiles, unless they are there from an earlier run."""
    log = place.logs / "corpus.log"

    def run_to_end(words: Sequence[str]) -> None:
        status = supervisor.start("corpus generator", words, log).wait()
        if status != 0:
            raise ProcessFailedError(f"corpus generator ended with status {status}:\n{tail(log)}")

    generator = corpus.Generator(place.syse / "syse.jar", corpus.find_java()[0])
    made = corpus.make(place.data, wanted, seed, generator, run_to_end)
    tell(f"{wanted.documents} documents, {wanted.users} users, {'made' if made else 'kept from the last run'}")


def start_operator(place: workspace.Workspace, kubeconfig: Path, supervisor: Supervisor) -> None:
    """Start the operator on this machine, outside the cluster, and wait until it has seen everything."""
    log = place.logs / "operator.log"
    ports = [free_port() for _ in range(2)]
    command: list[str | Path] = [
        "env", f"KUBECONFIG={kubeconfig}", f"PYTHONPATH={place.root / 'operator'}",
        sys.executable, "-m", "shai_operator", "run",
        "--images", place.root / "build" / "images", "--shai", place.shai,
        "--probes", f"127.0.0.1:{ports[0]}", "--webhooks", f"127.0.0.1:{ports[1]}",
    ]  # fmt: skip
    process = supervisor.start("operator", command, log)

    def ready() -> bool:
        probe = ["curl", "--silent", "--fail", "--output", "/dev/null", f"http://127.0.0.1:{ports[0]}/readyz"]
        return subprocess.run(probe, check=False).returncode == 0

    supervisor.wait_until(ready, process, "operator", log, 60.0)


def finish_removal(cluster: Cluster, tell: Callable[[str], None]) -> None:
    """Wait for the end of a pool that an earlier run, which was cut off, had begun to remove."""
    left = json.loads(cluster.run("get", "jailpools", "--output", "json"))["items"]
    if any(one["metadata"].get("deletionTimestamp") for one in left if one["metadata"]["name"] == overlay.POOL):
        tell("the pool of an earlier run is being removed")
        cluster.run("wait", "--for=delete", f"jailpool/{overlay.POOL}", f"--timeout={_REMOVAL_SECONDS}s")


def await_pipeline(cluster: Cluster, tell: Callable[[str], None]) -> dict[str, Any]:
    """Wait until the pool's members are installed and the pipeline is in force on them."""

    def progress(pool: dict[str, Any]) -> None:
        rows = (pool.get("status") or {}).get("members") or ()
        for row in rows:
            now = row.get("progress") or {}
            step = f" ({now['done']}/{now['total']})" if now.get("total") else ""
            tell(f"{row['name']}: {row.get('reason', '')} {now.get('task', '')}{step}")
        if not rows:
            tell(kubernetes.summary(pool))

    cluster.wait("jailpool", overlay.POOL, partial(_is, "Ready"), progress, _PROVISION_SECONDS)
    return cluster.wait(
        "pipeline",
        overlay.PIPELINE,
        lambda found: _is("Ready", found) and _is("Analysed", found),
        lambda found: tell(kubernetes.summary(found)),
        _CHANGE_SECONDS,
    )


def show_analysis(cluster: Cluster, console: Console) -> None:
    """Show what the offline analysis has validated."""
    console.print(cluster.run("get", "analysisruns").rstrip(), markup=False, highlight=False)
    names = cluster.run("get", "analysisruns", "--output", "name").split()
    for name in names[-1:]:
        kind, _, run = name.partition("/")
        for entry in cluster.get(kind, run)["status"].get("coverage") or ():
            share = entry["validated"] / entry["expected"] if entry["expected"] else 1.0
            console.print(
                f"      {entry['task']} {entry['access']}s {entry['conduits']}: {entry['validated']} of "
                f"{entry['expected']} expected accesses validated ({share:.1%})",
                highlight=False,
            )


def await_benchmark(cluster: Cluster, seconds: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Wait until the benchmark has been measured; KubernetesError when it fails."""

    def progress(found: dict[str, Any]) -> None:
        now = (found.get("status") or {}).get("progress") or {}
        tell(f"slice {now.get('done', 0)} of {now.get('total', '?')} {now.get('message', '')}")

    found = cluster.wait(
        "benchmark",
        overlay.BENCHMARK,
        lambda one: condition(one, "Succeeded")["status"] != "Unknown",
        progress,
        seconds + _MEASURE_MARGIN_SECONDS,
    )
    ended = condition(found, "Succeeded")
    if ended["status"] != "True":
        raise kubernetes.KubernetesError(f"benchmark {overlay.BENCHMARK}: {ended['reason']}: {ended['message']}")
    return found


def show_benchmark(cluster: Cluster, found: dict[str, Any], console: Console) -> None:
    """Print what kubectl shows, and the whole table."""
    console.print("$ kubectl get benchmark", style="bold")
    console.print(cluster.run("get", "benchmark").rstrip(), markup=False, highlight=False, soft_wrap=True)
    results = cluster.get("configmap", found["status"]["results"])
    console.print(results["data"]["table.txt"].rstrip(), markup=False, highlight=False, soft_wrap=True)


def enforce(
    cluster: Cluster, place: workspace.Workspace, supervisor: Supervisor, tell: Callable[[str], None]
) -> list[str]:
    """Show who finds what, and a leak that mode baseline lets happen and mode shai stops; return lines to print."""
    return verification.findings(verification.verify(_member(cluster, place), place.logs, supervisor, tell))


def _member(cluster: Cluster, place: workspace.Workspace) -> Member:
    """Describe the pool's first member; twins of it are broken, not it itself."""
    (row,) = cluster.get("jailpool", overlay.POOL)["status"]["members"]
    directory = place.members / row["name"]
    own = {
        "IMAGE": str(place.members / "images" / row["image"]),
        "DATA": str(directory / "data"),
        "MEMBER_ADDRESS": row["address"],
        "REDIS_SOCKET": str(directory / "run" / "store.sock"),
    }
    variables = {
        name: value.replace("$(IMAGE)", own["IMAGE"]).replace("$(DATA)", own["DATA"])
        for name, value in overlay.variables(corpus.find_java()).items()
    }
    return Member(
        name=row["name"],
        pipeline=overlay.PIPELINE,
        image=Path(own["IMAGE"]),
        data=Path(own["DATA"]),
        manifests=place.examples,
        monitor=directory / "run" / "monitor.sock",
        store=Path(own["REDIS_SOCKET"]),
        seed=place.data / SEED_COMMANDS,
        variables={**variables, **own},
    )


def monitor(place: workspace.Workspace) -> Monitor:
    """Return the monitor of the pool's first member."""
    return Monitor(place.shai, place.members / f"{overlay.POOL}-0" / "run" / "monitor.sock")


def suggestions(cluster: Cluster, place: workspace.Workspace, people: Population) -> list[str]:
    """Say what to try while the demo stays up."""
    document: Document = checks.private_document(place.data, "bob")
    explain = ("explain", "--conduit", document.conduit, "--principal")
    return [
        "",
        f"Sys-E is running at http://{overlay.HOST}:{overlay.PORT} (Ctrl-C ends it). Log in with a demo key:",
        *(f"  {name:5} {people[name].seed.hex()}" for name in ("alice", "bob")),
        "For kubectl:",
        f"  export KUBECONFIG={cluster.kubeconfig}",
        f"  alias kubectl='{cluster.kubectl} kubectl'",
        "Try next:",
        f"  - in the browser: search “{document.title}” as alice and as bob",
        f"  - what there is: kubectl get shai -n {cluster.namespace}; kubectl get pipelines -n {cluster.namespace} -w",
        f"  - why:      {monitor(place).command(*explain, 'alice')}",
        f"  - audit:    {monitor(place).command('audit', '--principal', 'alice')}",
        "  - a policy that is stopped by the canary: docs/rollout.md",
    ]


def _is(kind: str, found: dict[str, Any]) -> bool:
    generation = (found.get("status") or {}).get("observedGeneration")
    return condition(found, kind)["status"] == "True" and generation == found["metadata"]["generation"]


def load_people(place: workspace.Workspace) -> Population:
    """Read who can log in."""
    return population.load(place.data)
