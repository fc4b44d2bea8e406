# SPDX-License-Identifier: BSD-2-Clause
"""Two replicas of the operator on one machine: whichever ends, nobody notices."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.control.leases import LEADER
from testing.cluster import path_of
from testing.faulty_server import FaultyServer, held, passed_on
from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running.objects import OPEN, apply, await_condition, policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster

LEASE_SECONDS = 9
LEASE = path_of("coordination.k8s.io/v1", "leases", NAMESPACE, LEADER)


class Pair:
    """Two replicas, each with a proxy before the API server and a name in the lease."""

    def __init__(self, cluster: Cluster, servers: dict[str, FaultyServer], directory: Path) -> None:
        self.cluster, self.servers = cluster, servers
        self.replicas: dict[str, Operator] = {}
        for name, server in servers.items():
            options = "--lease-seconds", str(LEASE_SECONDS), "--compare-seconds", "2", "--identity", name
            beside = next(iter(self.replicas.values()), None)
            self.replicas[name] = Operator(
                cluster, directory / name, *options, kubeconfig=server.kubeconfig, beside=beside
            )

    def holder(self) -> str:
        """Return who leads, as the lease says; empty when nobody does."""
        lease = self.cluster.request("GET", LEASE).json()
        return str((lease.get("spec") or {}).get("holderIdentity") or "")

    def leads(self, name: str) -> bool:
        """Whether a replica says that it leads."""
        return self.replicas[name].metric("shai_operator_leading") == 1

    def now(self) -> tuple[str, str]:
        """Have both run, and return the one that leads and the other one."""
        for replica in self.replicas.values():
            if replica.process.poll() is not None:
                replica.start()
        names = list(self.replicas)
        until(lambda: sum(map(self.leads, names)) == 1, "one of them leads", 60)
        return (names[0], names[1]) if self.leads(names[0]) else (names[1], names[0])


@pytest.fixture(scope="module")
def pair(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(FaultyServer(devcluster.kubeconfig, directory, name)) for name in ("one", "two")
        }
        made = Pair(devcluster, servers, directory)
        for replica in made.replicas.values():
            stack.enter_context(replica)
        yield made


class Author:
    """Applies policies without a pause, as many people would, and notes each that is refused."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._path = path_of("shai.dev/v1alpha1", "policies", namespace)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.applied, self.refused = 0, list[str]()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._thread.start()
        try:
            until(lambda: self.applied > 3, "policies are applied")
            yield
            more = self.applied + 20
            until(lambda: self.applied > more, "more policies are applied")
        finally:
            self._stop.set()
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            name = f"p-{self.applied}"
            answer = self._cluster.request("POST", self._path, policy(name, OPEN.format(name=name.replace("-", "_"))))
            self.applied += 1
            if answer.status_code != 201:
                self.refused.append(answer.text)


def _applied_meanwhile(pair: Pair, namespace: str, end: Callable[[], None], survivor: str, most: int) -> None:
    """Apply policies while a replica ends, until the other one leads; at most so many may be refused."""
    author = Author(pair.cluster, namespace)
    with author.at_work():
        end()
        until(lambda: pair.leads(survivor), "the other one leads", 60)
    assert len(author.refused) <= most, author.refused
    last = f"p-{author.applied - 1}"
    await_condition(pair.cluster, "Policy", namespace, last, "Accepted", ("True", "Accepted"))


IN_FLIGHT = 1
"""Nobody else can answer what a replica had begun to answer when it was killed or stopped."""


def test_nobody_notices_a_leader_that_ends(pair: Pair, namespace: str) -> None:
    leading, standby = pair.now()
    _applied_meanwhile(pair, namespace, pair.replicas[leading].stop, standby, 0)
    assert pair.holder() == standby, "the lease was given back at once"
    assert "has not ended" not in pair.replicas[leading].log.read_text()


def test_nobody_notices_a_leader_that_is_killed(pair: Pair, namespace: str) -> None:
    leading, standby = pair.now()
    _applied_meanwhile(pair, namespace, pair.replicas[leading].kill, standby, IN_FLIGHT)


def test_nobody_notices_a_standby_that_is_killed(pair: Pair, namespace: str) -> None:
    leading, standby = pair.now()
    _applied_meanwhile(pair, namespace, pair.replicas[standby].kill, leading, IN_FLIGHT)


def test_a_leader_that_stands_still_is_not_noticed_and_writes_nothing_when_it_goes_on(
    pair: Pair, namespace: str
) -> None:
    leading, standby = pair.now()
    stopped = pair.replicas[leading].process
    try:
        _applied_meanwhile(pair, namespace, lambda: stopped.send_signal(signal.SIGSTOP), standby, IN_FLIGHT)
        pair.servers[leading].requests.clear()
    finally:
        stopped.send_signal(signal.SIGCONT)
    until(lambda: not pair.leads(leading), "it stands by", 60)
    assert stopped.poll() is None
    written = {method for method, path in pair.servers[leading].requests.copy() if "leases" not in path}
    assert written <= {"GET", "WATCH"}
    assert pair.holder() == standby


def test_a_leader_that_is_cut_off_stops_and_stands_by(pair: Pair, devcluster: Cluster, namespace: str) -> None:
    leading, standby = pair.now()
    cut_off = pair.replicas[leading]
    pair.servers[leading].fault = held
    try:
        until(lambda: not pair.leads(leading), "the leader has given up", 60)
        assert pair.holder() == leading, "it has given up before another may begin"
        until(lambda: pair.leads(standby), "the other one leads", 60)
        apply(devcluster, namespace, policy("p"))
        await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
        assert cut_off.process.poll() is None
        assert cut_off.get("/readyz").status_code == 200, "it still answers admission"
        assert cut_off.get("/healthz").status_code == 200
    finally:
        pair.servers[leading].fault = passed_on
    pair.replicas[standby].stop()
    until(lambda: pair.leads(leading), "it leads again", 60)


def test_another_cluster_s_operator_does_not_share_the_port(pair: Pair, tmp_path: Path, devcluster: Cluster) -> None:
    pair.now()
    secret = path_of("v1", "secrets", NAMESPACE, "shai-authority")
    elsewhere = Operator(devcluster, tmp_path / "log", "--namespace", "default", beside=pair.replicas["one"])
    try:
        elsewhere.start(wait=False)
        until(lambda: elsewhere.process.poll() is not None, "it ends", 60)
        assert elsewhere.process.returncode == 1
        assert "cannot serve webhooks" in elsewhere.log.read_text()
        assert "choose another address (--webhooks)" in elsewhere.log.read_text()
    finally:
        elsewhere.stop()
        devcluster.request("DELETE", path_of("v1", "secrets", "default", "shai-authority"))
    assert devcluster.request("GET", secret).status_code == 200


def test_targets_are_the_same_at_every_replica(pair: Pair) -> None:
    pair.now()
    answers: list[Any] = [until(lambda one=one: _targets(one), "the pools are known") for one in pair.replicas.values()]
    assert answers[0] == answers[1]


def _targets(replica: Operator) -> list[Any]:
    answer = replica.get("/targets?job=shai-monitor")
    return [json.loads(answer.text)] if answer.status_code == 200 else []
