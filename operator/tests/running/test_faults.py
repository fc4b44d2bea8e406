# SPDX-License-Identifier: BSD-2-Clause
"""A pool that serves while the API server is down, a kind is deleted, and the operator is killed repeatedly."""

from __future__ import annotations

import random
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from testing import cluster as clusters
from testing.cluster import path_of
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import API, await_condition, events, policy
from tests.running.objects import apply as apply_all
from tests.running.small_pools import PATIENCE_SECONDS, Site, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster, Server

NAMESPACE = "faults"
KILLS = 3
"""The most crashes for each operation of the operator."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return clusters.Server(tmp_path_factory.mktemp("faults") / "data")


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[Cluster]:
    """An API server of its own, because these tests break it."""
    with clusters.running(server) as running:
        clusters.install(running)
        running.kubectl("create", "namespace", NAMESPACE)
        yield running


@pytest.fixture(scope="module")
def temporary(site: Site) -> Iterator[Path]:
    """The operator's own directory for temporary files, as in a pod."""
    made = site.base / "tmp"
    made.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(made))
        yield made


@pytest.fixture(scope="module", autouse=True)
def operator(
    cluster: Cluster, site: Site, temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    assert not _left_in(temporary)
    log = tmp_path_factory.mktemp("operator") / "log"
    options = ("--images", str(site.images), "--identity", "test", "--compare-seconds", "5")
    with Operator(cluster, log, *options) as running:
        yield running


class Crashes:
    """Kills the operator at moments that the seed decides, and starts it again."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._random = random.Random(self._seed())

    def _seed(self) -> int:
        seed = secrets.randbits(32)
        print(f"seed of the crashes: {seed}")
        return seed

    def until(self, condition: Callable[[], bool], what: str, longest: float) -> None:
        """Wait for a condition; before it, crash the operator, each time up to ``longest`` seconds after its start."""
        for _ in range(KILLS):
            moment = time.monotonic() + self._random.uniform(0.0, longest)
            while time.monotonic() < moment and not condition():
                time.sleep(0.05)
            if condition():
                break
            self._operator.kill()
            self._operator.start(wait=self._random.random() < 0.7)
        until(condition, f"{what}, after crashes", PATIENCE_SECONDS)
        self._operator.await_ready()


@pytest.fixture(scope="module")
def pool(cluster: Cluster, operator: Operator, site: Site) -> Iterator[SmallPool]:
    """Two members that serve, although the operator crashed while it made them."""
    made = SmallPool(cluster, NAMESPACE, site, "hardy")
    made.make(replicas=2)
    Crashes(operator).until(lambda: _serves(made), "two members serve", 12.0)
    yield made
    if made.read() is not None:
        clusters.install(cluster)
        made.delete()
        made.await_gone()


def _left_in(directory: Path) -> list[str]:
    """Return the private directories of operators."""
    return [path.name for path in directory.glob("shai-runs-*/run-*")]


def _serves(pool: SmallPool) -> bool:
    status, share = pool.status(), pool.share()
    releases = {row.get("release") for row in status.get("members") or ()}
    return (
        status.get("readyReplicas") == 2
        and not share.get("candidateRelease")
        and releases == {share.get("stableRelease")}
    )


def _assert_single(pool: SmallPool) -> None:
    """Check that nothing exists twice: processes, releases, or runs of the analysis."""
    for ordinal in (0, 1):
        assert len(pool.supervisors(ordinal)) == len(pool.monitors(ordinal)) == 1
    until(lambda: pool.stored_releases() == [pool.stable()], "releases that are used no longer are gone")
    runs = pool.cluster.request("GET", path_of(API, "analysisruns", NAMESPACE)).json()["items"]
    bundles = [run["spec"].get("bundle") for run in runs]
    assert len(bundles) == len(set(bundles))
    revisions = pool.cluster.request("GET", path_of(API, "policyrevisions", NAMESPACE)).json()["items"]
    numbers = [(revision["spec"]["policy"], revision["spec"]["revision"]) for revision in revisions]
    assert len(numbers) == len(set(numbers))


def test_an_operator_that_crashes_makes_one_of_everything(pool: SmallPool, temporary: Path) -> None:
    _assert_single(pool)
    until(lambda: len(_left_in(temporary)) == 1, "no keys are left behind by those that were killed")


def test_an_operator_that_crashes_rolls_a_change_out(pool: SmallPool, operator: Operator) -> None:
    before, monitors = pool.stable(), pool.monitors()
    pool.define("a change")
    Crashes(operator).until(lambda: _serves(pool) and pool.stable() != before, "the change is rolled out", 6.0)
    assert pool.monitors() == monitors, "a change of policy starts no monitor anew"
    _assert_single(pool)


def test_an_api_server_that_comes_back_finds_the_operator_at_work(
    cluster: Cluster, server: Server, pool: SmallPool, operator: Operator
) -> None:
    monitors, before = pool.monitors(), pool.stable()
    pool.define("sent just before the end")
    server.down()
    try:
        assert operator.get("/healthz").status_code == 200, "an API server that is away is no fault of the operator's"
    finally:
        server.up()
    until(lambda: cluster.try_kubectl("get", "jailpools").returncode == 0, "the API server serves")
    until(lambda: _serves(pool) and pool.stable() != before, "the change is rolled out", PATIENCE_SECONDS)
    apply_all(cluster, NAMESPACE, policy("later"))
    await_condition(cluster, "Policy", NAMESPACE, "later", "Accepted", ("True", "Accepted"), seconds=PATIENCE_SECONDS)
    assert operator.process.poll() is None
    assert pool.monitors() == monitors
    _assert_single(pool)


def test_members_serve_on_when_a_kind_is_deleted(cluster: Cluster, pool: SmallPool, operator: Operator) -> None:
    monitors, before, stable, process = pool.monitors(), pool.status(), pool.stable(), operator.process
    cluster.delete("crd", "policies.shai.dev")

    def told() -> list[str]:
        return [event["message"] for event in events(cluster, "default", pool.name) if event["reason"] == "KindMissing"]

    until(told, "an event says so", PATIENCE_SECONDS)
    assert "apply the definitions again" in told()[0]
    await_condition(cluster, "Pipeline", NAMESPACE, "p", "Accepted", ("False", "PolicyMissing"))
    assert pool.monitors() == monitors
    assert pool.stable() == stable
    assert [row["bundle"] for row in pool.rows()] == [row["bundle"] for row in before["members"]]

    clusters.install(cluster)
    pool.define("back again")
    until(lambda: _serves(pool) and pool.stable() != stable, "the pool follows", PATIENCE_SECONDS)
    await_condition(cluster, "Pipeline", NAMESPACE, "p", "Ready", ("True", "Complete"), seconds=PATIENCE_SECONDS)
    assert pool.monitors() == monitors
    assert operator.process is process
    assert process.poll() is None


def test_an_operator_that_crashes_lets_a_pool_go(cluster: Cluster, pool: SmallPool, operator: Operator) -> None:
    order = ["policy", "task", "pipeline", "jailpool"]
    with _shuffled(order):
        for kind in order:
            scope = () if kind == "jailpool" else ("-n", NAMESPACE)
            cluster.kubectl(*scope, "delete", kind, "--all", "--wait=false")
    Crashes(operator).until(lambda: pool.read() is None, "the pool is gone", 5.0)
    pool.assert_nothing_left()


@contextmanager
def _shuffled(order: list[str]) -> Iterator[None]:
    seed = secrets.randbits(32)
    print(f"seed of the order: {seed}")
    random.Random(seed).shuffle(order)
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"in the order {order}: {error}") from error
