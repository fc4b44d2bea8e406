# SPDX-License-Identifier: BSD-2-Clause
"""Two replicas of the operator on one machine: whichever ends, nobody notices."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import contextmanager
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

LEASE_SECONDS = 12
LEASE = path_of("coordination.k8s.io/v1", "leases", NAMESPACE, LEADER)


class Pair:
    """Two replicas; the first one is reached through a proxy, and each has a name in the lease."""

    def __init__(self, cluster: Cluster, server: FaultyServer, directory: Path) -> None:
        self.cluster, self.server = cluster, server
        options = "--lease-seconds", str(LEASE_SECONDS), "--compare-seconds", "2"
        first = Operator(cluster, directory / "first", *options, "--identity", "first", kubeconfig=server.kubeconfig)
        self.replicas = {
            "first": first,
            "second": Operator(cluster, directory / "second", *options, "--identity", "second", beside=first),
        }

    def holder(self) -> str:
        """Return who leads, as the lease says; empty when nobody does."""
        lease = self.cluster.request("GET", LEASE).json()
        return str((lease.get("spec") or {}).get("holderIdentity") or "")

    def leads(self, name: str) -> bool:
        """Whether a replica says that it leads."""
        return self.replicas[name].metric("shai_operator_leading") == 1

    def make_lead(self, name: str) -> tuple[Operator, Operator]:
        """Have both run and this one lead; return it and the other one."""
        other = "second" if name == "first" else "first"
        for replica in self.replicas.values():
            if replica.process.poll() is not None:
                replica.start()
        if self.holder() != name:
            self.replicas[other].stop()
            until(lambda: self.leads(name), f"the {name} replica leads", 60)
            self.replicas[other].start()
        until(lambda: self.leads(name) and not self.leads(other), f"the {name} replica leads alone", 60)
        return self.replicas[name], self.replicas[other]


@pytest.fixture(scope="module")
def pair(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("replicas")
    with FaultyServer(devcluster.kubeconfig, directory) as server:
        made = Pair(devcluster, server, directory)
        with made.replicas["first"], made.replicas["second"]:
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


def _kill(replica: Operator) -> None:
    replica.kill()


def _end(replica: Operator) -> None:
    replica.stop()


def _halt(replica: Operator) -> None:
    replica.process.send_signal(signal.SIGSTOP)


ENDS: dict[str, Callable[[Operator], None]] = {
    "a clean end": _end,
    "a crash": _kill,
    "a process that is stopped": _halt,
}


@pytest.mark.parametrize("standing", ["leader", "standby"])
@pytest.mark.parametrize("how", ENDS)
def test_no_policy_is_refused_when_a_replica_ends(
    pair: Pair, devcluster: Cluster, namespace: str, how: str, standing: str
) -> None:
    leader, standby = pair.make_lead("first")
    ending = leader if standing == "leader" else standby
    author = Author(devcluster, namespace)
    try:
        with author.at_work():
            ENDS[how](ending)
            survivor = "second" if standing == "leader" else "first"
            until(lambda: pair.leads(survivor), "the other one leads", 60)
        # Nobody else can answer what a replica had begun to answer when it was killed or stopped.
        assert len(author.refused) <= (0 if ENDS[how] is _end else 1), author.refused
        last = f"p-{author.applied - 1}"
        await_condition(devcluster, "Policy", namespace, last, "Accepted", ("True", "Accepted"))
    finally:
        ending.process.send_signal(signal.SIGCONT)


def test_who_ends_in_good_order_gives_the_lease_back_at_once(pair: Pair) -> None:
    leader, _ = pair.make_lead("first")
    before = pair.cluster.request("GET", LEASE).json()["spec"]
    leader.stop()
    assert pair.holder() in ("", "second"), before


def test_a_leader_that_is_cut_off_stops_and_comes_back_as_a_standby(
    pair: Pair, devcluster: Cluster, namespace: str
) -> None:
    leader, standby = pair.make_lead("first")
    pair.server.fault = held
    try:
        until(lambda: not pair.leads("first"), "the leader has given up", 60)
        assert pair.holder() == "first", "it has given up before another may begin"
        until(lambda: pair.leads("second"), "the other one leads", 60)
        apply(devcluster, namespace, policy("p"))
        await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
        assert leader.process.poll() is None
        assert leader.get("/readyz").status_code == 200, "it still answers admission"
        assert leader.get("/healthz").status_code == 200
    finally:
        pair.server.fault = passed_on
    standby.stop()
    until(lambda: pair.leads("first"), "it leads again", 60)
    apply(devcluster, namespace, policy("q"))
    await_condition(devcluster, "Policy", namespace, "q", "Accepted", ("True", "Accepted"))


def test_a_leader_that_stood_still_writes_nothing_when_it_goes_on(
    pair: Pair, devcluster: Cluster, namespace: str
) -> None:
    leader, _ = pair.make_lead("first")
    leader.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: pair.leads("second"), "the other one leads", 60)
        apply(devcluster, namespace, policy("p"))
        await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
    except BaseException:
        leader.kill()
        raise
    pair.server.requests.clear()
    leader.process.send_signal(signal.SIGCONT)
    until(lambda: not pair.leads("first"), "it stands by", 60)
    written = {method for method, path in pair.server.requests if "leases" not in path}
    assert written <= {"GET", "WATCH"}
    assert pair.holder() == "second"


def test_another_cluster_s_operator_does_not_share_the_port(pair: Pair, tmp_path: Path, devcluster: Cluster) -> None:
    pair.make_lead("first")
    secret = path_of("v1", "secrets", NAMESPACE, "shai-authority")
    elsewhere = Operator(devcluster, tmp_path / "log", "--namespace", "default", beside=pair.replicas["first"])
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
    pair.make_lead("first")
    answers: list[Any] = [until(lambda one=one: _targets(one), "the pools are known") for one in pair.replicas.values()]
    assert answers[0] == answers[1]


def _targets(replica: Operator) -> list[Any]:
    answer = replica.get("/targets?job=shai-monitor")
    return [json.loads(answer.text)] if answer.status_code == 200 else []
