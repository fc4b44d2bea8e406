# SPDX-License-Identifier: BSD-2-Clause
"""Metrics, targets and the certificate for scraping, with a real API server and a real monitor."""

from __future__ import annotations

import json
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running.objects import await_condition, read
from tests.running.small_pools import PATIENCE_SECONDS, Site, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster

USER = 65534
SECRET = "test-metrics-client"  # noqa: S105 - the name of an object


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Return a directory of an ordinary user."""
    with tempfile.TemporaryDirectory(prefix="scrape-", dir="/var/tmp") as path:
        os.chown(path, USER, USER)
        yield Path(path)


@pytest.fixture(scope="module")
def operator(
    devcluster: Cluster, site: Site, directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    options = ["--images", str(site.images), "--identity", "test", "--scrape", str(directory)]
    options += ["--scrape-secret", SECRET, "--cluster", "here"]
    with Operator(devcluster, tmp_path_factory.mktemp("scraping") / "log", *options) as running:
        yield running


@pytest.fixture(scope="module")
def pool(devcluster: Cluster, operator: Operator, new_namespace: Callable[[], str], site: Site) -> Iterator[SmallPool]:
    made = SmallPool(devcluster, new_namespace(), site, "scraped")
    made.make(replicas=1)
    made.await_ready(1)
    await_condition(devcluster, "Pipeline", made.namespace, "p", "Analyzed", ("True", "Complete"))
    yield made
    assert operator.process.poll() is None
    made.delete()
    made.await_gone()


def groups(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((directory / "targets" / "members.json").read_text())
    return found


def test_the_certificate_scrapes_the_members_and_does_nothing_else(pool: SmallPool, directory: Path) -> None:
    until(lambda: (directory / "targets" / "members.json").exists() and groups(directory), "the target is announced")
    (group,) = groups(directory)
    assert group["labels"] == {
        "cluster": "here", "namespace": pool.namespace, "pool": "scraped", "member": "scraped-0",
    }  # fmt: skip
    assert group["targets"] == [f"{pool.rows()[0]['address']}:8443"]
    tls = directory / "tls"
    assert {(path.stat().st_uid, path.stat().st_mode & 0o777) for path in tls.glob("*.key")} == {(USER, 0o600)}
    context = ssl.create_default_context(cafile=str(tls / "ca.pem"))
    context.load_cert_chain(tls / "client.pem", tls / "client.key")
    with httpx2.Client(base_url=f"https://{group['targets'][0]}", verify=context, timeout=120.0) as client:
        scraped = client.get("/metrics")
        assert scraped.status_code == 200
        assert "shai_sessions_active" in scraped.text
        assert client.get("/readyz").status_code == 200
        for method, path in (
            ("GET", "/v1/status"),
            ("GET", "/v1/audit"),
            ("POST", "/v1/bundles"),
            ("POST", "/v1/facts"),
        ):
            assert client.request(method, path).status_code == 403, path


def test_the_secret_has_the_certificate(pool: SmallPool, devcluster: Cluster) -> None:
    assert pool.rows()
    secret = json.loads(devcluster.kubectl("get", "secret", SECRET, "-n", NAMESPACE, "-o", "json"))
    assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}


def test_discovery_by_http_says_the_same(pool: SmallPool, operator: Operator, directory: Path) -> None:
    assert pool.rows()
    assert operator.get("/targets?job=shai-monitor").json() == groups(directory)
    assert operator.get("/targets").status_code == 404
    assert operator.get("/targets?job=other").status_code == 404


def test_metrics_say_what_the_objects_say(pool: SmallPool, operator: Operator, devcluster: Cluster) -> None:
    status, row = pool.status(), pool.rows()[0]
    labels = {"pool": "scraped", "namespace": pool.namespace}
    for state, field in (("ready", "readyReplicas"), ("updated", "updatedReplicas"), ("current", "replicas")):
        assert operator.metric("shai_pool_members", **labels, state=state) == status[field] == 1
    ((info, _),) = [found for found in operator.samples("shai_member_info") if found[0]["pool"] == "scraped"]
    wanted = {"member": "scraped-0", "provider": "local", "image": row["image"], "release": pool.stable()}
    assert info == {**labels, **wanted, "host": row.get("host", "")}
    assert operator.metric("shai_member_ready", **labels) == 1
    rollout = {"stable": pool.stable(), "candidate": "", "reason": "Complete"}
    assert operator.metric("shai_rollout_info", **labels, **rollout) == 1
    assert operator.metric("shai_rollouts_total", **labels, result="completed") == 1
    pipeline = read(devcluster, "Pipeline", pool.namespace, "p")
    assert pipeline is not None
    for condition in pipeline["status"]["conditions"]:
        found = {
            series["status"]: value
            for series, value in operator.samples("shai_pipeline_condition")
            if (series["namespace"], series["type"]) == (pool.namespace, condition["type"])
        }
        assert found == {"true": 0.0, "false": 0.0, "unknown": 0.0} | {condition["status"].lower(): 1.0}
    policy = read(devcluster, "Policy", pool.namespace, "open")
    assert policy is not None
    stable = policy["status"]["stableRevision"]
    assert operator.metric("shai_policy_revision_info", namespace=pool.namespace, policy="open", stable=stable) == 1
    assert operator.metric("shai_analysis_run_info", namespace=pool.namespace, reason="Complete") == 1
    assert operator.metric("shai_operator_build_info") == 1
    assert operator.metric("shai_operator_scrape_certificate_expiry_timestamp_seconds") > 0


def test_targets_and_series_end_with_their_objects_and_not_with_the_operator(
    pool: SmallPool, operator: Operator, directory: Path
) -> None:
    operator.stop()
    before = groups(directory)
    assert len(before) == 1
    operator.start()
    until(lambda: operator.get("/targets?job=shai-monitor").status_code == 200, "the operator knows its pools")
    assert groups(directory) == before
    (directory / "targets" / "members.json").unlink()
    until((directory / "targets" / "members.json").exists, "what was removed is written again")
    pool.set(replicas=0, scaleIn={"drainSeconds": 0})
    until(lambda: groups(directory) == [], "the member is no target any more", PATIENCE_SECONDS)
    assert operator.metric("shai_pool_members", pool="scraped", state="desired") == 0
    until(lambda: not operator.metric("shai_member_info", pool="scraped"), "the member has no series any more")
    pool.delete()
    until(lambda: not operator.samples("shai_pool_members"), "the pool has no series any more", PATIENCE_SECONDS)


def test_without_its_directory_the_operator_does_not_start(devcluster: Cluster, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    other = Operator(devcluster, tmp_path / "log", "--scrape", str(missing))
    other.start(wait=False)
    assert other.process.wait(timeout=120) == 1
    assert f"cannot write to {missing}" in other.log.read_text()
