# SPDX-License-Identifier: BSD-2-Clause
"""Watches that die silently, and other clients that write to the same objects all the time."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest

from shai_operator.reconcile.objects import PLURALS
from testing.cluster import path_of
from testing.operators import Operator
from testing.proxies import SilencingProxy
from testing.waiting import until
from tests.running.objects import (
    API,
    OPEN,
    apply,
    await_condition,
    condition,
    pipeline,
    policy,
    read,
    resource,
    serving,
    task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster

LAG_SECONDS = 8
HEALTHY, UNHEALTHY = 200, 503
FOREIGN = "example.com/hold"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watches")


@pytest.fixture(scope="module")
def proxy(devcluster: Cluster, directory: Path) -> Iterator[SilencingProxy]:
    with SilencingProxy(devcluster.kubeconfig, directory) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, proxy: SilencingProxy, directory: Path) -> Iterator[Operator]:
    options = ("--compare-seconds", "1", "--lag-seconds", str(LAG_SECONDS))
    with Operator(devcluster, directory / "log", *options, kubeconfig=proxy.kubeconfig) as running:
        yield running


def test_what_silent_watches_do_not_bring_is_found_and_told(
    devcluster: Cluster, namespace: str, operator: Operator, proxy: SilencingProxy
) -> None:
    pool = f"watched-{namespace}"
    apply(devcluster, namespace, serving(namespace, pool), policy("before"))
    await_condition(devcluster, "Policy", namespace, "before", "Accepted", ("True", "Accepted"))
    until(lambda: operator.get("/healthz").status_code == HEALTHY, "the liveness probe succeeds")
    proxy.silence()
    apply(devcluster, namespace, policy("after"), policy("before", OPEN.format(name="before") + "# changed\n"))
    await_condition(devcluster, "Policy", namespace, "after", "Accepted", ("True", "Accepted"))
    until(lambda: _revision(devcluster, namespace) == 2, "the change is acted on")
    devcluster.kubectl("-n", namespace, "delete", "policy", "after")
    apply(devcluster, namespace, task("t", "after"), pipeline("p", ["t"], "/a/**", "before", pool=pool))
    await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("False", "PolicyMissing"))

    def lag() -> float:
        return operator.metric("shai_operator_watch_lag_seconds", kind="Policy")

    until(lambda: lag() > 0, "the lag is measured")
    first = lag()
    until(lambda: lag() > first, "the lag grows")
    until(lambda: operator.get("/healthz").status_code == UNHEALTHY, "the liveness probe fails", LAG_SECONDS + 60)
    assert "behind" in operator.get("/healthz").text

    # The kubelet restarts it.
    operator.stop()
    proxy.restore()
    operator.start()
    until(lambda: operator.get("/healthz").status_code == HEALTHY, "the liveness probe succeeds again")
    apply(devcluster, namespace, policy("after"))
    await_condition(devcluster, "Policy", namespace, "after", "Accepted", ("True", "Accepted"))
    until(lambda: lag() == 0, "no watch is behind any more")
    assert "cannot compare" not in operator.log.read_text()
    devcluster.delete("jailpool", pool)


def _revision(cluster: Cluster, namespace: str) -> int:
    found = read(cluster, "Policy", namespace, "before")
    return int((found or {}).get("status", {}).get("latestRevision", 0))


class Rival:
    """Writes to one object continuously, like a careless controller: reads it, changes it, replaces it as a whole."""

    def __init__(self, cluster: Cluster, kind: str, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._path = path_of(API, PLURALS[kind], "" if kind == "JailPool" else namespace, name)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written, self.refused = 0, list[str]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.01):
            number += 1
            self._replace("", self._label, number)
            self._replace("/status", self._condition, number)

    def _replace(self, subresource: str, change: Callable[[dict[str, Any], int], None], number: int) -> None:
        found = self._cluster.request("GET", self._path).json()
        change(found, number)
        answer = self._cluster.request("PUT", self._path + subresource, found)
        if answer.status_code == 200:
            self.written += 1
        elif answer.status_code != 409:  # a conflict is expected
            self.refused.append(answer.text)

    def _label(self, found: dict[str, Any], number: int) -> None:
        metadata = found["metadata"]
        metadata.setdefault("labels", {})["rival"] = str(number)
        others = [finalizer for finalizer in metadata.get("finalizers", []) if finalizer != FOREIGN]
        metadata["finalizers"] = [*others, FOREIGN]
        if found["kind"] == "Policy":
            text = found["spec"]["text"].split("# rival")[0]
            found["spec"]["text"] = f"{text}# rival {number // 8}\n"

    def _condition(self, found: dict[str, Any], number: int) -> None:
        status = found.setdefault("status", {})
        kept = [condition for condition in status.get("conditions", []) if condition["type"] != "Reviewed"]
        own = {
            "type": "Reviewed",
            "status": "True",
            "reason": "ByRival",
            "message": str(number),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status["conditions"] = [*kept, own]


def test_nothing_of_anybody_is_lost_to_conflicting_writers(
    devcluster: Cluster, namespace: str, operator: Operator
) -> None:
    pool = f"rivals-{namespace}"
    objects = [
        policy("p"),
        task("t", "p"),
        pipeline("line", ["t"], "/a/**", "p", pool=pool),
        serving(namespace, pool),
    ]
    apply(devcluster, namespace, *objects)
    names = {"Policy": "p", "Pipeline": "line", "JailPool": pool}
    rivals = [Rival(devcluster, kind, namespace, name) for kind, name in names.items()]
    with rivals[0], rivals[1], rivals[2]:
        for rival in rivals:
            until(lambda rival=rival: rival.written > 40, "the rival has written much", 120)
        apply(devcluster, namespace, resource("FactSource", "facts", inline=[]))
        await_condition(devcluster, "FactSource", namespace, "facts", "Ready", ("True", "Accepted"), seconds=120)
    assert [rival.refused for rival in rivals] == [[], [], []]

    def settled(kind: str) -> bool:
        found = read(devcluster, kind, namespace, names[kind]) or {}
        return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])

    for kind, name in names.items():
        until(lambda kind=kind: settled(kind), f"the operator has seen the last state of {kind}", 60)
        found = read(devcluster, kind, namespace, name)
        assert found is not None
        assert FOREIGN in found["metadata"]["finalizers"]
        assert "rival" in found["metadata"]["labels"]
        assert condition(found, "Reviewed") == ("True", "ByRival")
    operator.await_quiet()
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
    await_condition(devcluster, "Pipeline", namespace, "line", "Accepted", ("True", "Accepted"))
    revisions = json.loads(devcluster.kubectl("-n", namespace, "get", "policyrevisions", "-o", "json"))["items"]
    newest = max(revisions, key=lambda revision: revision["spec"]["revision"])
    found = read(devcluster, "Policy", namespace, "p")
    assert found is not None
    assert newest["spec"]["text"] == found["spec"]["text"]
    assert found["status"]["latestRevision"] == newest["spec"]["revision"]
    assert len({revision["spec"]["revision"] for revision in revisions}) == len(revisions)
    held = read(devcluster, "JailPool", "", pool)
    assert held is not None
    assert "shai.dev/release" in held["metadata"]["finalizers"]
    _let_go(devcluster, namespace, names)


def _let_go(cluster: Cluster, namespace: str, names: dict[str, str]) -> None:
    """Delete everything: the operator removes its own finalizer, and leaves the other one."""
    for kind, name in names.items():
        scope = () if kind == "JailPool" else ("-n", namespace)
        cluster.kubectl(*scope, "delete", kind.lower(), name, "--wait=false")
    until(
        lambda: (read(cluster, "JailPool", "", names["JailPool"]) or {})["metadata"]["finalizers"] == [FOREIGN],
        "the operator has let go of the pool",
    )
    for kind, name in names.items():
        scope = () if kind == "JailPool" else ("-n", namespace)
        patch = '{"metadata": {"finalizers": null}}'
        cluster.kubectl(*scope, "patch", kind.lower(), name, "--type=merge", "--patch", patch)
        until(lambda kind=kind, name=name: read(cluster, kind, namespace, name) is None, f"{kind} {name} is gone")
