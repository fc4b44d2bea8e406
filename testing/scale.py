# SPDX-License-Identifier: BSD-2-Clause
"""Measures the operator with many definitions: time, memory, and requests to the API server.

python -m testing.scale [--policies 500] [--pipelines 50]

Prints a table and keeps it as JSON. Two worlds are measured, each on an API server of its own: in one, the pipelines'
pool is made after them; in the other, the pool exists and has no replicas. In both, the operator is restarted
afterwards.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testing import cluster as clusters
from testing.cluster import ROOT, path_of
from testing.operators import Operator
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testing.cluster import Cluster

API = "shai.dev/v1alpha1"
NAMESPACE, POOL = "scale", "scale"
PATIENCE_SECONDS = 300.0
REQUESTS = "shai_operator_api_requests_total"


@dataclass
class Step:
    """The cost of one action of a user."""

    world: str
    step: str
    sent_seconds: float
    """The time until kubectl had sent everything."""
    done_seconds: float
    """The time until all objects had the expected status, from the same moment."""
    cpu_seconds: float
    """CPU time of the operator, until it was quiet."""
    megabytes: float
    """Resident memory of the operator at the end."""
    requests: dict[str, int] = field(default_factory=dict)
    """Requests by verb and kind."""

    @property
    def total(self) -> int:
        """The number of all requests."""
        return sum(self.requests.values())


class Bench:
    """One API server, one operator, and the measurements."""

    def __init__(self, world: str, cluster: Cluster, operator: Operator, policies: int, pipelines: int) -> None:
        self.world, self.cluster, self.operator = world, cluster, operator
        self.policies, self.pipelines = policies, pipelines
        self.steps: list[Step] = []

    def measure(self, step: str, act: Callable[[], object], done: Callable[[], bool]) -> Step:
        """Measure the time from ``act`` until ``done``, and count the operator's requests until it is quiet."""
        before, process, start = requests(self.operator), self.operator.process.pid, time.monotonic()
        worked = self.operator.cpu_seconds()
        act()
        sent = time.monotonic() - start
        until(done, step, PATIENCE_SECONDS)
        took = time.monotonic() - start
        self.operator.await_quiet()
        after = requests(self.operator)
        if self.operator.process.pid != process:
            before, worked = {}, 0.0  # another process, which counts from 0
        spent = {key: after[key] - before.get(key, 0) for key in sorted(after) if after[key] > before.get(key, 0)}
        found = Step(
            world=self.world,
            step=step,
            sent_seconds=round(sent, 1),
            done_seconds=round(took, 1),
            cpu_seconds=round(self.operator.cpu_seconds() - worked, 1),
            megabytes=round(self.operator.resident_megabytes()),
            requests=spent,
        )
        self.steps.append(found)
        return found

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects as a user does."""
        self.cluster.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))

    def defined(self) -> bool:
        """Whether every policy is accepted and has its revision, and every pipeline has been judged."""
        return (
            len(self._with("policies", "Accepted")) == self.policies
            and len(self._items("policyrevisions")) == self.policies
            and len(self._with("pipelines", "Accepted", "True", "False")) == self.pipelines
        )

    def accepted(self) -> bool:
        """Whether every pipeline is accepted, too."""
        return self.defined() and len(self._with("pipelines", "Accepted")) == self.pipelines

    def reconciled(self) -> bool:
        """Whether the operator has reconciled as many objects as exist, since it was started."""
        return self.operator.metric("shai_operator_reconcile_seconds_count") >= self.policies + self.pipelines

    def _items(self, plural: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.cluster.request("GET", path_of(API, plural, NAMESPACE)).json()["items"]
        return items

    def _with(self, plural: str, kind: str, *wanted: str) -> list[dict[str, Any]]:
        return [
            item
            for item in self._items(plural)
            if (item.get("status") or {}).get("observedGeneration") == item["metadata"]["generation"]
            and any(
                held["type"] == kind and held["status"] in (wanted or ("True",))
                for held in item["status"]["conditions"]
            )
        ]


def definitions(policies: int, pipelines: int) -> list[dict[str, Any]]:
    """Return policies, and pipelines of one task each, which share the policies among them."""
    made = [_object("Policy", f"policy-{policy}", text=_text(policy)) for policy in range(policies)]
    for number in range(pipelines):
        own = list(range(number, policies, pipelines)) or [number % policies]
        paths = [{"path": f"/p{number}/{policy}/**", "policy": {"name": f"policy-{policy}"}} for policy in own]
        conduits = [{"name": f"files-{number}", "kind": "file", "directory": True, "ingress": True, "paths": paths}]
        task = {"command": ["/bin/true"], "runtimeName": "system", "run": "Once", "taint": {"name": f"policy-{own[0]}"}}
        made.append(_object("Task", f"task-{number}", **task))
        made.append(_object("Pipeline", f"pipeline-{number}", pool=POOL, tasks=[f"task-{number}"], conduits=conduits))
    return made


def pool() -> dict[str, Any]:
    """Return the pool, which has no replicas."""
    runtimes = [{"name": "system", "paths": ["/bin", "/lib", "/lib64", "/usr/lib", "/usr/bin"]}]
    return _object(
        "JailPool", POOL, allowedNamespaces={"names": [NAMESPACE]}, provider="local", replicas=0, runtimes=runtimes
    )


def changed(number: int) -> dict[str, Any]:
    """Return a policy with another text."""
    return _object("Policy", f"policy-{number}", text=_text(number) + "# changed\n")


def requests(operator: Operator) -> dict[str, int]:
    """Return the number of the operator's requests, by verb and kind."""
    return {
        f"{labels['verb']} {labels['kind']}": int(value)
        for labels, value in operator.samples(REQUESTS)
        if labels["kind"] not in {"Lease", "Secret"}
    }


def run(directory: Path, policies: int, pipelines: int) -> list[Step]:
    """Measure both worlds."""
    return [
        *world(directory / "later", "pool made afterwards", policies, pipelines, pool_first=False),
        *world(directory / "empty", "pool without replicas", policies, pipelines, pool_first=True),
    ]


def world(directory: Path, name: str, policies: int, pipelines: int, *, pool_first: bool) -> list[Step]:
    """Measure one world in a new directory."""
    directory.mkdir()
    objects = definitions(policies, pipelines)
    with clusters.start(directory / "data") as cluster:
        clusters.install(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        with Operator(cluster, directory / "log") as operator:
            bench = Bench(name, cluster, operator, policies, pipelines)
            if pool_first:
                bench.apply(pool())
                bench.measure("definitions applied", lambda: bench.apply(*objects), bench.accepted)
            else:
                bench.measure("definitions applied", lambda: bench.apply(*objects), bench.defined)
                bench.measure("pool made", lambda: bench.apply(pool()), bench.accepted)
            bench.measure("one policy changed", lambda: bench.apply(changed(0)), lambda: _second(bench))
            bench.measure("operator restarted", operator.restart, bench.reconciled)
        return bench.steps


def _second(bench: Bench) -> bool:
    found = bench.cluster.request("GET", path_of(API, "policies", NAMESPACE, "policy-0")).json()
    return bool(found["status"].get("latestRevision") == 2)  # noqa: PLR2004 - the change


def table(steps: Sequence[Step]) -> str:
    """Return the measurements as a table for people."""
    lines = [f"{'world':24}{'step':24}{'sent s':>8}{'done s':>8}{'cpu s':>7}{'MB':>6}{'requests':>10}  most of them"]
    for step in steps:
        most = sorted(step.requests.items(), key=lambda entry: -entry[1])[:5]
        named = ", ".join(f"{count} {key}" for key, count in most)
        lines.append(
            f"{step.world:24}{step.step:24}{step.sent_seconds:8.1f}{step.done_seconds:8.1f}{step.cpu_seconds:7.1f}"
            f"{step.megabytes:6.0f}{step.total:10d}  {named}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and store the results."""
    parser = argparse.ArgumentParser(prog="python -m testing.scale", description="Measure the operator at scale.")
    parser.add_argument("--policies", type=int, default=500)
    parser.add_argument("--pipelines", type=int, default=50)
    parser.add_argument("--report", type=Path, default=ROOT / "out" / "operator-scale.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="shai-scale-", dir="/var/tmp") as directory:
        steps = run(Path(directory), options.policies, options.pipelines)
    print(f"{options.policies} policies, {options.pipelines} pipelines\n{table(steps)}")
    options.report.parent.mkdir(parents=True, exist_ok=True)
    written = [{**asdict(step), "total": step.total} for step in steps]
    counts = {"policies": options.policies, "pipelines": options.pipelines}
    options.report.write_text(json.dumps({**counts, "steps": written}, indent=1) + "\n")


def _object(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _text(number: int) -> str:
    return f"policy policy_{number} {{\n  read   :- true.\n  update :- true.\n}}\n"


if __name__ == "__main__":
    main()
