# SPDX-License-Identifier: BSD-2-Clause
"""The worlds that are measured, each on an API server of its own."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testing import cluster as clusters
from testing.cluster import path_of
from testing.operators import Operator
from testing.scaling.bench import PATIENCE_SECONDS, Bench, apply
from testing.scaling.definitions import API, NAMESPACE, definitions, policy, pool
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testing.cluster import Cluster
    from testing.scaling.report import Step

STAND_IN = "tests.scale"
"""The operator with a provider that stands in for installed members; see operator/tests/scale."""
_ADDRESSES = "127.77.0.0/23"


@dataclass(frozen=True)
class Changes:
    """Changes of one policy, one after the other, and how long each took until it was in force."""

    world: str
    members: int
    seconds: tuple[float, ...]


def accepted(directory: Path, name: str, size: tuple[int, int], *, pool_first: bool, bare: bool = False) -> list[Step]:
    """Measure how definitions are accepted: with a pool that has no replicas, or with one that is made after them.

    With ``bare``, the same objects are created before that where nobody looks at them.
    """
    objects = definitions(*size)
    with _cluster(directory) as cluster:
        alone = _bare(cluster, objects) if bare else None
        with Operator(cluster, directory / "log") as operator:
            bench = Bench(name, cluster, operator, directory / "data", size)
            if pool_first:
                bench.apply(pool())
                bench.measure("definitions applied", lambda: bench.apply(*objects), bench.accepted)
            else:
                bench.measure("definitions applied", lambda: bench.apply(*objects), bench.defined)
                bench.measure("pool made", lambda: bench.apply(pool()), bench.accepted)
            bench.steps[0].bare_seconds = alone
            bench.measure("one policy changed", lambda: bench.apply(policy(0, 1)), lambda: bench.revision(0) > 1)
            bench.measure("operator restarted", operator.restart, bench.reconciled)
        return bench.steps


def in_force(
    directory: Path, name: str, size: tuple[int, int], members: int, changes: int
) -> tuple[list[Step], Changes]:
    """Measure how changes reach the members of a pool, which stand-ins answer for."""
    objects = definitions(*size, run="Always")
    with _cluster(directory) as cluster, Operator(cluster, directory / "log", program=STAND_IN) as operator:
        bench = Bench(name, cluster, operator, directory / "data", size)
        bench.measure("definitions applied", lambda: bench.apply(*objects), bench.defined)
        bench.measure(
            f"pool of {members} made",
            lambda: bench.apply(pool(members, _ADDRESSES)),
            lambda: bool(bench.everywhere(members)),
        )
        took = []

        def change_all() -> None:
            for number in range(changes):
                before, start = bench.everywhere(members), time.monotonic()
                bench.apply(policy(number % size[0], number + 1))
                until(lambda before=before: bench.everywhere(members, before), f"change {number}", PATIENCE_SECONDS)
                took.append(time.monotonic() - start)
                progress(f"{name}: change {number + 1} of {changes} in force after {took[-1]:.1f} s")

        bench.measure(f"{changes} changes", change_all, lambda: True)
        bench.measure("pool deleted", lambda: cluster.delete("jailpool", "scale"), lambda: True)
        return bench.steps, Changes(name, members, tuple(round(seconds, 2) for seconds in took))


def progress(text: str) -> None:
    """Say how far the measurement is."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _cluster(directory: Path) -> Iterator[Cluster]:
    directory.mkdir()
    with clusters.start(directory / "data") as cluster:
        clusters.install(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield cluster


def _bare(cluster: Cluster, objects: list[dict[str, Any]]) -> float:
    """Return the seconds in which kubectl creates objects where no operator is, and delete them."""
    start = time.monotonic()
    apply(cluster, *objects)
    took = time.monotonic() - start
    for plural in ("pipelines", "tasks", "policies"):
        cluster.request("DELETE", path_of(API, plural, NAMESPACE))
        until(lambda plural=plural: not _left(cluster, plural), f"no {plural} are left", PATIENCE_SECONDS)
    return round(took, 2)


def _left(cluster: Cluster, plural: str) -> list[Any]:
    left: list[Any] = cluster.request("GET", path_of(API, plural, NAMESPACE), limit="1").json()["items"]
    return left
