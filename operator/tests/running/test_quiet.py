# SPDX-License-Identifier: BSD-2-Clause
"""The requests of an operator that has nothing to do, while its members serve sessions. Stand-ins are the members."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from testing.faulty_server import FaultyServer
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import apply, await_condition, pipeline, policy, resource, serving, task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testing.cluster import Cluster

LOOKS = 8
"""For so many looks at the members, each of which finds another number of sessions, requests are counted."""
MOST_A_MINUTE = 2
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@pytest.fixture(scope="module")
def server(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with FaultyServer(devcluster.kubeconfig, tmp_path_factory.mktemp("quiet"), "counting") as running:
        yield running


@pytest.fixture(scope="module")
def operator(devcluster: Cluster, server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("operator") / "log"
    with Operator(devcluster, log, kubeconfig=server.kubeconfig, program="tests.scale") as running:
        yield running


@pytest.fixture
def pools(devcluster: Cluster, operator: Operator, namespace: str) -> Iterator[list[str]]:
    """Make two pools whose members serve, and an object of every kind."""
    del operator
    network = f"127.{random.randint(16, 250)}.{random.randint(0, 255)}"
    names = [f"quiet-{namespace}-{number}" for number in range(2)]
    apply(devcluster, namespace, policy("p"), task("t", "p", run="Always"), resource("FactSource", "facts", inline=[]))
    devcluster.kubectl("apply", "-f", "-", stdin=_principal(namespace))
    for number, name in enumerate(names):
        addresses = {"addresses": f"{network}.{16 * number}/28"}
        spec = {"replicas": 2, "network": addresses, "healing": {"periodSeconds": 1}, "scaleIn": {"drainSeconds": 0}}
        line = pipeline(f"line-{number}", ["t"], f"/{number}/**", "p", pool=name)
        apply(devcluster, namespace, serving(namespace, name, **spec), line)
        nightly = resource("OfflineAnalysis", f"nightly-{number}", pipeline=f"line-{number}", schedule="0 3 * * *")
        apply(devcluster, namespace, nightly, resource("Benchmark", f"cost-{number}", pipeline="absent"))
    for number in range(2):
        for of in ("Ready", "Analyzed"):
            done = ("True", "Complete")
            await_condition(devcluster, "Pipeline", namespace, f"line-{number}", of, done, seconds=120)
    yield names
    for name in names:
        devcluster.delete("jailpool", name)
    devcluster.kubectl("delete", "principal", f"alice-{namespace}")


def test_at_rest_nothing_is_written_and_little_is_asked(
    operator: Operator, server: FaultyServer, pools: list[str]
) -> None:
    operator.await_quiet(but="JailPool")
    before, since, looks = Counter(server.requests), time.monotonic(), _looks(operator)
    until(lambda: _looks(operator) >= looks + LOOKS * len(pools), "the members have been looked at", 120)
    minutes = 1 + int((time.monotonic() - since) / 60)
    spent = {key: number - before[key] for key, number in server.requests.items() if number > before[key]}
    writes, reads = Counter[str](), Counter[str]()
    for (method, path), number in spent.items():
        if "/leases" not in path:
            (writes if method in _WRITES else reads)[_kind(path)] += number
    # The number of sessions is written once a minute for each pool.
    assert writes.pop("jailpools", 0) <= len(pools) * minutes, spent
    assert not writes, spent
    assert all(number <= MOST_A_MINUTE * minutes for number in reads.values()), spent


def _looks(operator: Operator) -> float:
    """Return how often pools were reconciled, which follows each look at their members."""
    return operator.metric("shai_operator_reconcile_seconds_count", kind="JailPool")


def _kind(path: str) -> str:
    """Return the plural of the kind that a request is about."""
    _, api, *parts = path.split("/")
    parts = parts[1:] if api == "api" else parts[2:]
    return parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]


def _principal(namespace: str) -> str:
    key = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    return json.dumps(resource("Principal", f"alice-{namespace}", publicKey=key))
