# SPDX-License-Identifier: BSD-2-Clause
"""The example, adapted to this machine by a kustomization over crds/examples/syse, as any user would write it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.stacks import manifests

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.plan import Plan

POOL = PIPELINE = "syse"
BENCHMARK = "overhead"
INSTALLED = (f"benchmark/{BENCHMARK}", "offlineanalysis/nightly", f"pipeline/{PIPELINE}", f"jailpool/{POOL}")
"""The example's objects that install something on this machine, or measure it."""
NAMESPACE = "default"
"""Of the example's objects."""
HOST, PORT = "127.0.10.1", 8640
"""The address at which the pool's first member serves searches."""


def write(directory: Path, *, base: Path, plan: Plan, data: Path, members: Path, java: tuple[Path, Path]) -> Path:
    """Write the kustomization; return its directory, for ``kubectl apply -k``."""
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(base, directory)],
        "patches": [
            _patch("JailPool", POOL, _pool(data, members, java)),
            _patch("Benchmark", BENCHMARK, _benchmark(plan)),
        ],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return directory


def ports(base: Path) -> list[int]:
    """Return the ports at which the example listens, of which `PORT` is one."""
    pipeline = manifests.find(manifests.read(base), PIPELINE)
    return [int(conduit["listen"].rpartition(":")[2]) for conduit in manifests.connections(pipeline).values()]


def variables(java: tuple[Path, Path]) -> dict[str, str]:
    """Return the variables $(NAME) of the example's manifests."""
    return {
        "JAVA": str(java[0]),
        "JAVA_HOME": str(java[1]),
        "SYSE": "$(IMAGE)/syse",
        "KEYS": "$(DATA)/facts/population.jsonl",
    }


def _pool(data: Path, members: Path, java: tuple[Path, Path]) -> dict[str, Any]:
    return {
        "directory": str(members),
        "data": {"source": str(data), "mode": "Link"},
        "keyValue": {"mode": "Managed", "seed": str(data / SEED_COMMANDS)},
        "variables": [{"name": name, "value": value} for name, value in variables(java).items()],
        "healing": {"periodSeconds": 2},
        "scaleIn": {"drainSeconds": 0},
    }


def _benchmark(plan: Plan) -> dict[str, Any]:
    return {
        "modes": list(plan.modes),
        "rounds": plan.rounds,
        "sliceSeconds": max(round(plan.slice_seconds), 1),
        "sessionLengths": list(plan.session_lengths),
        "concurrentUsers": plan.concurrent_users,
        "warmUpSeconds": round(plan.warm_up_seconds),
        "seed": plan.seed,
    }


def _patch(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": "shai.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return {"target": {"kind": kind, "name": name}, "patch": yaml.safe_dump(body, sort_keys=False)}
