# SPDX-License-Identifier: BSD-2-Clause
"""An API server that is away, slow, overloaded or forgetful: the operator goes on by itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from shai_operator.control.webhooks import CONFIGURATION
from shai_operator.reconcile.objects import GROUP, PLURALS
from testing.cluster import install, path_of
from testing.faulty_server import FaultyServer, answered, held, late, passed_on
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import apply, await_condition, policy, resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster
    from testing.faulty_server import Fault

LEASE_SECONDS = 6
"""Outages that are longer than this cost the replica its lease."""
COMPARE_SECONDS = 5.0
WEBHOOKS = path_of("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", name=CONFIGURATION.name)
HEALED_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
"""How much longer that may take on a busy machine: without a bound, an operator that heals nothing takes hours."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outages")


@pytest.fixture(scope="module")
def server(devcluster: Cluster, directory: Path) -> Iterator[FaultyServer]:
    with FaultyServer(devcluster.kubeconfig, directory) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, server: FaultyServer, directory: Path) -> Iterator[Operator]:
    options = "--lease-seconds", str(LEASE_SECONDS), "--compare-seconds", str(COMPARE_SECONDS), "--identity", "alone"
    made = Operator(devcluster, directory / "log", *options, kubeconfig=server.kubeconfig)
    server.fault = answered(503)
    try:
        made.start(wait=False)
        until(lambda: "cannot begin yet" in made.log.read_text(), "it says for what it waits")
        until(lambda: "not ready yet" in _probe(made, "/readyz"), "the probe says so, too")
        assert _probe(made, "/healthz") == "ok\n"
        server.fault = passed_on
        made.await_ready()
        yield made
    finally:
        server.fault = passed_on
        made.__exit__()


def _probe(operator: Operator, path: str) -> str:
    return operator.get(path).text


def _works(cluster: Cluster, namespace: str, name: str) -> None:
    apply(cluster, namespace, policy(name))
    await_condition(cluster, "Policy", namespace, name, "Accepted", ("True", "Accepted"), seconds=60)


async def gone(request: web.Request) -> web.Response | None:
    """Answer watches with 410."""
    return web.Response(status=410, text="too old") if "watch" in request.query else None


async def garbled(request: web.Request) -> web.Response | None:
    """End watches in the middle of an event."""
    return web.Response(text='{"type": "ADDED", "object": {"kind"') if "watch" in request.query else None


FAULTS: dict[str, tuple[Fault, float]] = {
    "no answer, for a moment": (held, 1.0),
    "no answer, for longer than a lease": (held, 2.0 * LEASE_SECONDS),
    "overloaded": (answered(429, Retry_After="1"), 3.0),
    "failing": (answered(500), 3.0),
    "shutting down": (answered(503), 2.0 * LEASE_SECONDS),
    "watches that are too old": (gone, 3.0),
    "watches that break off": (garbled, 3.0),
    "refusing everything": (answered(403), 3.0),
    "slow": (late(0.8), 5.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_operator_goes_on_after_an_outage(
    devcluster: Cluster, namespace: str, operator: Operator, server: FaultyServer, fault: str
) -> None:
    process = operator.process
    _works(devcluster, namespace, "before")
    how, seconds = FAULTS[fault]
    server.fault = how
    try:
        end = time.monotonic() + seconds
        apply(devcluster, namespace, policy("meanwhile"))  # admission needs nothing of the API server
        while time.monotonic() < end:
            assert operator.get("/healthz").status_code == 200, (
                "an API server that is away is no fault of the operator's"
            )
            time.sleep(0.5)
    finally:
        server.fault = passed_on
    await_condition(devcluster, "Policy", namespace, "meanwhile", "Accepted", ("True", "Accepted"), seconds=60)
    _works(devcluster, namespace, "after")
    assert operator.process is process
    assert process.poll() is None


def test_a_kind_that_comes_back_is_watched_again(devcluster: Cluster, namespace: str, operator: Operator) -> None:
    _works(devcluster, namespace, "before")
    devcluster.delete("crd", "policies.shai.dev")
    install(devcluster)

    def again() -> bool:
        found = devcluster.try_kubectl("-n", namespace, "get", "policies")
        return found.returncode == 0

    until(again, "the kind is back")
    _works(devcluster, namespace, "after")
    assert operator.process.poll() is None


def _rules_of_creations_only(cluster: Cluster) -> None:
    found = cluster.request("GET", WEBHOOKS).json()
    found["webhooks"] = [
        {**webhook, "rules": [{**webhook["rules"][0], "operations": ["CREATE"]}]} for webhook in found["webhooks"]
    ]
    assert cluster.request("PUT", WEBHOOKS, found).status_code == 200


def _changed(**change: object) -> Callable[[Cluster], None]:
    def act(cluster: Cluster) -> None:
        found = cluster.request("GET", WEBHOOKS).json()
        found["webhooks"] = [{**webhook, **change} for webhook in found["webhooks"]]
        assert cluster.request("PUT", WEBHOOKS, found).status_code == 200

    return act


def _elsewhere(cluster: Cluster) -> None:
    found = cluster.request("GET", WEBHOOKS).json()
    for webhook in found["webhooks"]:
        webhook["clientConfig"] = {"url": "https://127.0.0.1:1/x", "caBundle": webhook["clientConfig"]["caBundle"]}
    assert cluster.request("PUT", WEBHOOKS, found).status_code == 200


def _untrusted(cluster: Cluster) -> None:
    found = cluster.request("GET", WEBHOOKS).json()
    for webhook in found["webhooks"]:
        del webhook["clientConfig"]["caBundle"]
    assert cluster.request("PUT", WEBHOOKS, found).status_code == 200


def _deleted(cluster: Cluster) -> None:
    cluster.kubectl("delete", "validatingwebhookconfiguration", CONFIGURATION.name)


def _emptied(cluster: Cluster) -> None:
    patch = "--type=merge", "--patch", '{"webhooks": null}'
    cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION.name, *patch)


LOSSES: dict[str, Callable[[Cluster], None]] = {
    "deleted": _deleted,
    "no webhooks": _emptied,
    "asked about less": _rules_of_creations_only,
    "asked about but ignored": _changed(failurePolicy="Ignore"),
    "asked about elsewhere": _elsewhere,
    "not believed": _untrusted,
    "not asked about one namespace": _changed(namespaceSelector={"matchLabels": {"checked": "yes"}}),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_webhooks_come_back(devcluster: Cluster, loss: str) -> None:
    def webhooks() -> object:
        return devcluster.request("GET", WEBHOOKS).json().get("webhooks")

    before = until(webhooks, "the webhooks are there", longest=PATIENCE_SECONDS)
    LOSSES[loss](devcluster)
    until(lambda: webhooks() == before, "the webhooks are back", HEALED_SECONDS, longest=PATIENCE_SECONDS)


def test_what_was_stored_without_admission_is_judged(devcluster: Cluster, namespace: str, server: FaultyServer) -> None:
    bad = policy("p", "policy p {\n  read :- nope(X).\n}\n")
    server.fault = answered(503)  # so that nobody makes the webhooks again
    try:
        devcluster.remove_webhooks()
        apply(devcluster, namespace, bad)
    finally:
        server.fault = passed_on
    found = await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("False", "Invalid"), seconds=60)
    assert "spec.text:2:11" in str(found["status"]["conditions"])
    until(lambda: devcluster.request("GET", WEBHOOKS).status_code == 200, "the webhooks are back", 30)


def test_an_operator_at_rest_asks_little(operator: Operator, server: FaultyServer) -> None:
    """Each minute two requests for each kind, beside the lease; here a minute is as long as four comparisons."""
    operator.await_quiet()
    until(lambda: _lists(server), "a comparison has just been made")
    server.requests.clear()
    until(lambda: len(_lists(server)) == len(PLURALS) and min(_lists(server).values()) >= 4, "four comparisons", 60)
    compared = max(_lists(server).values())
    asked = {path: count for (_, path), count in server.requests.items() if "/leases/" not in path}
    assert {path for path, count in asked.items() if count > compared + 1} == set(), asked
    assert {path for path in asked if GROUP not in path} <= {WEBHOOKS, "/api/v1/namespaces"}


def _lists(server: FaultyServer) -> dict[str, int]:
    return {
        path: count
        for (method, path), count in server.requests.copy().items()
        if method == "GET" and path.rpartition("/")[2] in PLURALS.values()
    }


def test_a_schedule_that_cannot_be_used_is_refused(devcluster: Cluster, namespace: str) -> None:
    def put(**spec: object) -> str:
        body = resource("OfflineAnalysis", "nightly", pipeline="p", **spec)
        path = path_of("shai.dev/v1alpha1", "offlineanalyses", namespace)
        body["metadata"]["namespace"] = namespace
        return str(devcluster.request("POST", path, body, dryRun="All").json().get("message"))

    assert "spec.schedule '61 * * * *': the minute '61' is not one; write 0-59" in put(schedule="61 * * * *")
    assert "spec.schedule '0 0 30 2 *' never fires: no month 2 has a day 30" in put(schedule="0 0 30 2 *")
    assert "spec.timeZone 'Europe/Berln' is not in the time zone" in put(schedule="0 3 * * *", timeZone="Europe/Berln")
    assert put(schedule="0 3 * * *", timeZone="Europe/Berlin") == "None"
