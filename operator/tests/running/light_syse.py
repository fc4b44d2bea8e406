# SPDX-License-Identifier: BSD-2-Clause
"""A small pool that serves Sys-E's front end with a light search engine: as much as a measurement needs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from loadgen.datasets import crowd
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.stacks import light, manifests
from testing.cluster import ROOT
from testing.waiting import until
from tests.running.objects import apply, condition, message, read, resource
from tests.running.small_pools import PATIENCE_SECONDS, SmallPool

if TYPE_CHECKING:
    from testing.cluster import Cluster
    from tests.running.small_pools import Site

PIPELINE = "syse"
_EXAMPLE = ROOT / "crds" / "examples" / "syse"
_PEOPLE = crowd.Crowd(users=1, hubs=20)
"""One user, and the others are friends. All may read one document, because the light engine picks at random, and a
measurement compares what two engines find."""


class LightSysE:
    """A pool with one member, on a host or on this machine."""

    def __init__(self, cluster: Cluster, namespace: str, site: Site, name: str, **spec: Any) -> None:
        self.cluster, self.namespace = cluster, namespace
        site.base.chmod(0o711)  # in mode baseline, tasks reach their programs and data by their paths
        data = site.base / f"data-{name}"
        crowd.make(data, _PEOPLE)
        shutil.rmtree(data / "corpus" / "private")
        (data / "keys.jsonl").chmod(0o600)
        variables = {"SYSE": "$(IMAGE)/syse", "KEYS": "$(DATA)/facts/population.jsonl"}
        self.pool = SmallPool(cluster, namespace, site, name)
        self.pool.set(
            replicas=1,
            allowedModes=["shai", "dynamic", "baseline"],
            data={"source": str(data), "mode": "Copy"},
            keyValue={"mode": "Managed", "seed": str(data / SEED_COMMANDS)},
            variables=[{"name": key, "value": value} for key, value in variables.items()],
            runtimes=[{"name": key, "paths": paths} for key, paths in light.RUNTIMES.items()],
            **spec,
        )
        objects = light.derive(manifests.read(_EXAMPLE), PIPELINE)
        for entry in objects:
            if entry["kind"] == "Pipeline":
                entry["spec"] |= {"pool": name, "rollout": {"steps": [{"members": 1, "pauseSeconds": 1}]}}
        apply(cluster, namespace, *objects)

    def await_analyzed(self) -> None:
        """Wait until the pipeline serves and is analysed."""

        def holds() -> bool:
            found = read(self.cluster, "Pipeline", self.namespace, PIPELINE)
            return {condition(found, of)[0] for of in ("Ready", "Analyzed")} == {"True"}

        until(holds, "the pipeline serves and is analysed", 2 * PATIENCE_SECONDS)

    def measure(self, name: str, **spec: Any) -> None:
        """Apply a Benchmark: short, since nobody looks at its figures."""
        usual = {"rounds": 1, "sliceSeconds": 1, "warmUpSeconds": 1, "sessionLengths": [1, 0], "concurrentUsers": 4}
        modes = {"modes": ["baseline", "shai"], "pipeline": PIPELINE}
        apply(self.cluster, self.namespace, resource("Benchmark", name, **{**usual, **modes, **spec}))

    def await_measured(self, name: str) -> dict[str, Any]:
        """Wait until a Benchmark is complete; return the object. AssertionError with its message when it fails."""

        def ended() -> dict[str, Any] | None:
            found = read(self.cluster, "Benchmark", self.namespace, name)
            assert condition(found, "Succeeded")[0] != "False", message(found, "Succeeded")
            return found if condition(found, "Succeeded") == ("True", "Complete") else None

        found: dict[str, Any] = until(ended, f"Benchmark {name} is complete", 2 * PATIENCE_SECONDS)
        return found
