# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for objects, with a real API server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from demo import kubernetes
from demo.kubernetes import Cluster, KubernetesError
from testing.cluster import PROGRAM

if TYPE_CHECKING:
    from testing.cluster import Cluster as DevCluster


@pytest.fixture
def cluster(devcluster: DevCluster, namespace: str) -> Cluster:
    made = Cluster(PROGRAM, devcluster.kubeconfig, namespace, lambda: None)
    made.run("create", "configmap", "one", "--from-literal=stands=well")
    return made


def stands_better(found: dict[str, Any]) -> bool:
    return bool(found["data"]["stands"] == "better")


def test_an_object_is_awaited_and_told_of(cluster: Cluster) -> None:
    change = ("patch", "configmap", "one", "--type=merge", '--patch={"data": {"stands": "better"}}')
    later = threading.Thread(target=cluster.run, args=change)
    messages: list[str] = []

    def tell(found: dict[str, Any]) -> None:
        messages.append(found["data"]["stands"])
        if len(messages) == 1:
            later.start()

    found = cluster.wait("configmap", "one", stands_better, tell, 60)
    later.join()
    assert stands_better(found)
    assert (messages[0], messages[-1]) == ("well", "better")


def test_an_object_that_does_not_come_about_is_named(cluster: Cluster) -> None:
    with pytest.raises(KubernetesError, match="configmap one is not ready after 0 s: no status"):
        cluster.wait("configmap", "one", stands_better, lambda _: None, 0)


def test_the_end_of_an_object_is_awaited(cluster: Cluster) -> None:
    with pytest.raises(KubernetesError, match="configmap one is still there after 0 s"):
        cluster.wait_gone("configmap", "one", lambda _: None, 0)
    cluster.run("delete", "configmap", "one")
    cluster.wait_gone("configmap", "one", lambda _: None, 0)


def test_nothing_is_awaited_that_cannot_come(cluster: Cluster) -> None:
    def ended() -> None:
        raise KubernetesError("the operator ended")

    bereft = Cluster(cluster.kubectl, cluster.kubeconfig, cluster.namespace, ended)
    with pytest.raises(KubernetesError, match="the operator ended"):
        bereft.wait("configmap", "one", stands_better, lambda _: None, 60)


def test_what_kubectl_says_of_a_failure_is_quoted(cluster: Cluster) -> None:
    with pytest.raises(KubernetesError, match=r"`kubectl get configmap two --output json` failed: .*\"two\" not found"):
        cluster.get("configmap", "two")
    assert cluster.find("configmap", "two") is None


def test_a_condition_of_an_older_generation_does_not_hold() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "all well"}
    found = {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": [ready]}}
    assert kubernetes.holds(found, "Ready")
    assert not kubernetes.holds({**found, "metadata": {"generation": 3}}, "Ready")
    assert not kubernetes.holds(found, "Analyzed")
