# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the demo. Each step can also be watched with kubectl."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo import overlay, probes
from demo.kubernetes import KubernetesError, condition, holds
from loadgen.datasets import corpus
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.driving.privileged import privileged_port
from loadgen.errors import LoadgenError
from loadgen.stacks.member import Member, write
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import ProcessFailedError, tail
from loadgen.verifying import verification

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from demo.kubernetes import Cluster
    from demo.workspace import Workspace
    from loadgen.datasets.sizes import Dataset
    from loadgen.plan import Plan
    from loadgen.stacks.supervisor import Supervisor

    Tell = Callable[[str], None]

_LOOPBACK = "127.0.0.1"
_OPERATORS = "shai-system"
_PROVISION_SECONDS = 900.0
_REMOVAL_SECONDS = 300.0
_CHANGE_SECONDS = 300.0
_MEASURE_MARGIN_SECONDS = 900.0


def make_dataset(place: Workspace, wanted: Dataset, seed: int, supervisor: Supervisor, tell: Tell) -> str:
    """Make the corpus, its users and their profiles, unless an earlier run made them; say which."""
    log = place.logs / "corpus.log"

    def run_to_end(words: Sequence[str]) -> None:
        tell(f"writing {wanted.documents} documents")
        process = supervisor.start("the corpus generator", words, log)
        status = process.wait()
        supervisor.end(process)
        if status != 0:
            raise ProcessFailedError(f"the corpus generator ended with status {status}:\n{tail(log)}")

    generator = corpus.Generator(place.generator, corpus.find_java()[0])
    made = corpus.make(place.data, wanted, seed, generator, run_to_end)
    return f"{wanted.documents} documents, {wanted.users} users, {'made' if made else 'kept from the last run'}"


def install(place: Workspace, cluster: Cluster, scrape: Path | None, supervisor: Supervisor, tell: Tell) -> str:
    """Install the custom resources and start the operator; return the way to use kubectl."""
    tell("installing the custom resources")
    cluster.run("apply", "--server-side", "--force-conflicts", "-k", str(place.root / "crds"))
    cluster.run("wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
    tell("installing the operator's namespace and rights")
    rights = str(place.root / "deploy" / "operator" / "rights")
    replace(cluster, namespace=_OPERATORS).run("apply", "--server-side", "--force-conflicts", "-k", rights)
    tell("starting the operator")
    _start_operator(place, cluster.kubeconfig, scrape, supervisor)
    return f"export KUBECONFIG={_short(cluster.kubeconfig)}"


def _start_operator(place: Workspace, kubeconfig: Path, scrape: Path | None, supervisor: Supervisor) -> None:
    """Start the operator on this machine, outside the cluster, and wait until it checks what is applied."""
    log = place.logs / "operator.log"
    probed = _LOOPBACK, privileged_port(_LOOPBACK) or free_port()  # Prometheus believes whoever answers there
    command: list[str | Path] = [
        "env", f"KUBECONFIG={kubeconfig}", f"PYTHONPATH={place.root / 'operator'}",
        sys.executable, "-m", "shai_operator", "run",
        "--images", place.images, "--shai", place.shai,
        "--probes", f"{_LOOPBACK}:{probed[1]}", "--webhooks", f"{_LOOPBACK}:{free_port()}",
    ]  # fmt: skip
    if scrape is not None:
        command += ["--scrape", scrape]
    process = supervisor.start("the operator", command, log)
    supervisor.wait_until(lambda: probes.is_ready(probed, "/readyz"), process, "the operator", log, 60.0)


def apply(place: Workspace, plan: Plan, cluster: Cluster, tell: Tell) -> str:
    """Apply the example, adapted to this machine; say what was done."""
    pool = cluster.find("jailpool", overlay.POOL)
    if pool is not None and pool["metadata"].get("deletionTimestamp"):
        tell("an earlier run was cut off: waiting until its pool is removed")
        cluster.wait_gone("jailpool", overlay.POOL, lambda _: None, _REMOVAL_SECONDS)
    directory = overlay.write(
        place.output / "manifests",
        base=place.examples,
        plan=plan,
        data=place.data,
        members=place.members,
        java=corpus.find_java(),
    )
    cluster.run("apply", "-k", str(directory))
    return f"kubectl apply -k {_short(directory)}"


def await_pipeline(cluster: Cluster, tell: Tell) -> None:
    """Wait until the pool's member is installed and the pipeline is in force on it."""
    cluster.wait(
        "jailpool", overlay.POOL, partial(holds, kind="Ready"), lambda pool: tell(_pool(pool)), _PROVISION_SECONDS
    )

    def stands(pipeline: dict[str, Any]) -> None:
        if not holds(pipeline, "Ready"):
            tell(condition(pipeline, "Ready")["message"])
        elif not holds(pipeline, "Analyzed"):
            tell("the offline analysis is under way")

    cluster.wait(
        "pipeline",
        overlay.PIPELINE,
        lambda found: holds(found, "Ready") and holds(found, "Analyzed"),
        stands,
        _CHANGE_SECONDS,
    )


def latest_analysis(cluster: Cluster) -> dict[str, Any]:
    """Return the AnalysisRun of the pipeline that completed last."""
    selector = f"--field-selector=spec.pipeline={overlay.PIPELINE}"
    runs: list[dict[str, Any]] = json.loads(cluster.run("get", "analysisruns", selector, "--output=json"))["items"]
    complete = [run for run in runs if condition(run, "Succeeded")["status"] == "True"]
    if not complete:
        raise KubernetesError(f"no AnalysisRun of pipeline {overlay.PIPELINE} is complete: `kubectl get analysisruns`")
    return max(complete, key=lambda run: str(run["status"]["completionTime"]))


def await_benchmark(cluster: Cluster, seconds: float, tell: Tell) -> dict[str, Any]:
    """Wait until the benchmark has been measured; KubernetesError when it fails."""

    def progress(found: dict[str, Any]) -> None:
        now = (found.get("status") or {}).get("progress") or {}
        if now.get("total"):
            tell(f"{now.get('done', 0)} of {now['total']} slices; {now.get('message', '')}")
        else:
            tell("waiting for the operator to begin")

    found = cluster.wait(
        "benchmark",
        overlay.BENCHMARK,
        lambda obj: condition(obj, "Succeeded")["status"] != "Unknown",
        progress,
        seconds + _MEASURE_MARGIN_SECONDS,
    )
    ended = condition(found, "Succeeded")
    if ended["status"] != "True":
        raise KubernetesError(f"Benchmark {overlay.BENCHMARK} did not succeed ({ended['reason']}): {ended['message']}")
    return found


def verify(cluster: Cluster, place: Workspace, supervisor: Supervisor, tell: Tell) -> dict[str, Any]:
    """Search as several users, and attempt a leak in mode baseline and in mode shai; return the findings."""
    return verification.verify(_member(cluster, place), place.logs, supervisor, tell)


def remove(cluster: Cluster, place: Workspace, tell: Tell) -> str:
    """Remove the demo's installation on this machine; say what is left; KubernetesError when it cannot be removed."""
    try:
        cluster.run("delete", *overlay.INSTALLED, "--ignore-not-found", "--wait=false")
        cluster.wait_gone("jailpool", overlay.POOL, lambda pool: tell(_pool(pool)), _REMOVAL_SECONDS)
    except LoadgenError as error:
        raise KubernetesError(
            f"the pool's member is still installed in {place.members}: {error}\n"
            "`make demo` removes it when it is run again"
        ) from error
    return f"only {_short(place.output)} is left"


def _pool(pool: dict[str, Any]) -> str:
    """Describe the operation on a pool's first member that is not ready."""
    for row in (pool.get("status") or {}).get("members") or ():
        now = row.get("progress") or {}
        if now.get("task"):
            step = f" ({now['done']} of {now['total']})" if now.get("total") else ""
            return f"member {row['name']}: {now['task']}{step}"
    return condition(pool, "Ready")["message"]


def socket(place: Workspace) -> Path:
    """Return the socket of the first member's monitor."""
    return place.members / f"{overlay.POOL}-0" / "run" / "monitor.sock"


def describe_member(cluster: Cluster, place: Workspace) -> Path:
    """Write a description of the pool's first member, for measurements by hand; return its path."""
    path = place.output / "member.json"
    write(_member(cluster, place), path)
    return path


def _member(cluster: Cluster, place: Workspace) -> Member:
    """Describe the pool's first member for `loadgen`, which breaks only twins of it."""
    pool = cluster.get("jailpool", overlay.POOL)
    (row,) = pool["status"]["members"]
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
        monitor=socket(place),
        store=Path(own["REDIS_SOCKET"]),
        seed=place.data / SEED_COMMANDS,
        variables={**variables, **own},
        runtimes={runtime["name"]: runtime["paths"] for runtime in pool["spec"]["runtimes"]},
    )


def _short(path: Path) -> Path:
    """Return a path relative to the current directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
