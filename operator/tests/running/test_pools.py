# SPDX-License-Identifier: BSD-2-Clause
"""The life of pools on this machine, with real playbooks, supervisors and monitors."""

from __future__ import annotations

import itertools
import json
import os
import random
import secrets
import signal
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from testing.operators import Operator
from testing.waiting import until
from tests.providers.support import arguments, processes_with
from tests.running.objects import (
    OPEN,
    apply,
    await_condition,
    condition,
    events,
    message,
    pipeline,
    policy,
    read,
    resource,
    task,
)
from tests.running.small_pools import PATIENCE_SECONDS, ROLLOUT, Site, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("pools") / "log"
    with Operator(devcluster, log, "--images", str(site.images), "--identity", "test") as running:
        yield running


@pytest.fixture
def new_pool(devcluster: Cluster, new_namespace: Callable[[], str], site: Site) -> Iterator[Callable[[str], SmallPool]]:
    """Return a function that makes pools; they are deleted at the end, and nothing of them may remain."""
    made: list[SmallPool] = []

    def make(name: str) -> SmallPool:
        made.append(SmallPool(devcluster, new_namespace(), site, name))
        return made[-1]

    yield make
    for pool in made:
        pool.delete()
    for pool in made:
        pool.await_gone()


def test_a_pool_comes_grows_is_healed_and_shrinks(devcluster: Cluster, new_pool: Callable[[str], SmallPool]) -> None:
    pool = new_pool("life")
    pool.make(replicas=1)
    progress = set()

    def provisioned() -> bool:
        for row in pool.rows():
            if row.get("progress"):
                assert row["reason"] in {"Provisioning", "Starting"}, row
                progress.add((row["progress"]["play"], row["progress"]["task"], row["progress"]["done"]))
        return condition(pool.read(), "Provisioned") == ("True", "Provisioned")

    until(provisioned, "the member is provisioned", PATIENCE_SECONDS)
    assert len({play for play, _, _ in progress}) > 1, progress
    pool.await_ready(1)
    await_condition(devcluster, "Pipeline", pool.namespace, "p", "Ready", ("True", "Complete"))
    until(lambda: "MemberReady" in [event["reason"] for event in events(devcluster, "default", "life")], "an event")
    left = datetime.fromisoformat(pool.rows()[0]["certificateEnds"]) - datetime.now(UTC)
    assert timedelta(days=89) < left < timedelta(days=91), left

    devcluster.kubectl("scale", "jailpool", "life", "--replicas=2")
    _await_ready(devcluster, "jailpool/life")
    assert [len(pool.monitors(ordinal)) for ordinal in (0, 1)] == [1, 1]
    pool.await_ready(2)

    seen = [pool.stable()]
    text = policy("open", OPEN.format(name="open") + "# changed\n")
    seasonal = {"variables": [{"name": "SEASON", "value": "winter"}]}
    for changed in (text, pipeline("p", ["once"], "/a/**", "open", pool="life", rollout=ROLLOUT, **seasonal)):
        apply(devcluster, pool.namespace, changed)
        _await_ready(devcluster, "policy/open", "pipeline/p", namespace=pool.namespace)
        assert pool.stable() not in seen, "Ready was not yet of this change"
        assert {row["release"] for row in pool.rows()} == {pool.stable()}
        seen.append(pool.stable())

    untouched = pool.monitors(1)
    for process in [*pool.supervisors(0), *pool.monitors(0)]:
        os.kill(process, signal.SIGKILL)
    until(lambda: pool.status()["readyReplicas"] == 1, "the death is noticed", PATIENCE_SECONDS)
    pool.await_ready(2)
    assert len(pool.supervisors(0)) == len(pool.monitors(0)) == 1
    assert pool.monitors(1) == untouched

    devcluster.kubectl("scale", "jailpool", "life", "--replicas=1")
    pool.await_ready(1)
    assert pool.monitors(1) == pool.supervisors(1) == []
    assert not (pool.directory / "life-1").exists()


def _await_ready(cluster: Cluster, *objects: str, namespace: str = "default") -> None:
    """Wait as people do, right after they have changed something."""
    limit = f"--timeout={PATIENCE_SECONDS:.0f}s"
    cluster.kubectl("-n", namespace, "wait", "--for=condition=Ready", limit, *objects)


def test_a_task_that_never_ends_holds_neither_its_pool_nor_a_mode(
    devcluster: Cluster, new_pool: Callable[[str], SmallPool]
) -> None:
    pool = new_pool("held")
    pool.set(allowedModes=["shai", "dynamic"], scaleIn={"drainSeconds": 0})
    mark = str(10**8 + random.randrange(10**8))
    endless = task("once", "open", command=["/bin/sleep", mark])
    line = pipeline("p", ["once"], "/a/**", "open", pool=pool.name, mode="dynamic", rollout=ROLLOUT)
    apply(devcluster, pool.namespace, policy("open"), endless, line)
    until(lambda: processes_with(mark), "the task runs", PATIENCE_SECONDS)
    pool.set(allowedModes=["shai"], scaleIn={"drainSeconds": 0})
    until(lambda: not processes_with(mark), "what runs in a mode that is no longer allowed is taken out")
    apply(devcluster, pool.namespace, {**line, "spec": {**line["spec"], "mode": "shai"}})
    until(lambda: processes_with(mark), "it runs in a mode that is allowed", PATIENCE_SECONDS)
    before = {*processes_with(mark), *pool.monitors()}
    pool.set(allowedModes=["shai"], scaleIn={"drainSeconds": 0}, variables=[{"name": "SEASON", "value": "winter"}])

    def installed_anew() -> bool:
        task, monitors = processes_with(mark), pool.monitors()
        return bool(task and monitors) and before.isdisjoint([*task, *monitors])

    until(installed_anew, "its configuration changes, and the task runs again", PATIENCE_SECONDS)
    pool.delete()
    pool.await_gone()


def test_a_task_that_does_not_start_is_an_event_of_its_pool(
    devcluster: Cluster, new_pool: Callable[[str], SmallPool]
) -> None:
    pool = new_pool("refusing")
    pool.set()
    failing = task("once", "open", command=["/bin/false"])
    apply(devcluster, pool.namespace, policy("open"), failing)
    apply(devcluster, pool.namespace, pipeline("p", ["once"], "/a/**", "open", pool=pool.name, rollout=ROLLOUT))
    found = pool.await_condition("Ready", "False", "TaskFailed")
    assert "task p/once" in message(found, "Ready")

    def told() -> list[str]:
        about = events(devcluster, "default", pool.name)
        return [event["message"] for event in about if event["reason"] == "TaskFailed"]

    until(told, "the event")
    assert all("task p/once" in text for text in told())


def test_an_image_may_come_later_and_members_than_fit_are_left_out(
    site: Site, operator: Operator, new_pool: Callable[[str], SmallPool]
) -> None:
    pool = new_pool("late")
    pool.make(replicas=2, maxMembers=1, image="later")
    found = pool.await_condition("Provisioned", "False", "ImageMissing")
    assert str(site.images / "later") in message(found, "Provisioned")
    assert "build the image" in message(found, "Provisioned")
    operator.await_quiet(but="JailPool")
    site.image("later")
    found = pool.await_condition("Provisioned", "False", "TooFewHosts")
    assert "2 members are wanted, and the hosts have room for 1" in message(found, "Provisioned")

    def serving() -> str:
        row = pool.rows()[0]
        return str(row.get("release") or "") if row["reason"] == "Ready" else ""

    before = until(serving, "the one that fits serves", PATIENCE_SECONDS)
    assert condition(pool.read(), "Ready") == ("False", "TooFewHosts")
    pool.define("a change")
    until(lambda: serving() not in {"", before}, "it follows changes", PATIENCE_SECONDS)


def test_a_pool_deleted_while_nobody_looked_goes_when_somebody_does(
    operator: Operator, new_pool: Callable[[str], SmallPool]
) -> None:
    pool = new_pool("orphan")
    pool.make(replicas=1)
    pool.await_ready(1)
    assert pool.stored_releases() == [pool.stable()]
    operator.kill()
    try:
        pool.delete()
        assert len(pool.monitors()) == 1
    finally:
        operator.start()
    pool.await_gone()


ORDERS = 4


def test_definitions_and_pool_may_be_deleted_in_any_order(
    devcluster: Cluster, new_pool: Callable[[str], SmallPool]
) -> None:
    seed = secrets.randbits(32)
    print(f"seed of the orders: {seed}")
    names = {"policy": "open", "task": "once", "pipeline": "p", "jailpool": ""}
    orders = random.Random(seed).sample(list(itertools.permutations(names)), ORDERS)
    pools = [new_pool(f"order-{number}") for number in range(ORDERS)]
    for pool in pools:
        pool.make(replicas=0)
    for pool, order in zip(pools, orders, strict=True):
        await_condition(devcluster, "Pipeline", pool.namespace, "p", "Accepted", ("True", "Accepted"))
        until(pool.stable, "the pool has a release")
        for kind in order:
            if kind == "jailpool":
                pool.delete()
            else:
                devcluster.kubectl("-n", pool.namespace, "delete", kind, names[kind], "--wait=false")
    for pool, order in zip(pools, orders, strict=True):
        pool.await_gone()
        for kind, name in (("Policy", "open"), ("Task", "once"), ("Pipeline", "p")):
            assert read(devcluster, kind, pool.namespace, name) is None, order


@pytest.fixture
def principals(devcluster: Cluster) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield a prefix of names, and what makes two Principals with it: one of a namespace, and one of another one."""
    prefix = f"p{secrets.token_hex(4)}"

    def make(space: str) -> None:
        for called, known in (("ours", space), ("theirs", "kube-system")):
            spec = {"publicKey": "0" * 64, "allowedNamespaces": {"names": [known]}}
            apply(devcluster, space, resource("Principal", f"{prefix}-{called}", **spec))

    yield prefix, make
    for called in ("ours", "theirs"):
        devcluster.delete("principal", f"{prefix}-{called}")


@pytest.fixture
def facts_server() -> Iterator[tuple[str, list[str]]]:
    """Serve facts on loopback; yield the URL, and the paths that were asked for."""
    asked: list[str] = []

    class Facts(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer = b'{"conduit": "friends/alice", "says": "friend", "tuples": [["bob"]]}\n'
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Facts) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_members_fetch_what_their_pool_lists_and_know_whom_their_namespace_may_know(
    devcluster: Cluster,
    new_pool: Callable[[str], SmallPool],
    facts_server: tuple[str, list[str]],
    principals: tuple[str, Callable[[str], None]],
) -> None:
    pool, (origin, asked), (prefix, make_principals) = new_pool("sourced"), facts_server, principals
    make_principals(pool.namespace)
    space = pool.namespace

    def fetched(url: str) -> dict[str, Any]:
        return resource("FactSource", "friends", http={"url": url, "intervalSeconds": 1})

    def refused(url: str) -> str:
        return devcluster.try_kubectl("-n", space, "apply", "-f", "-", stdin=json.dumps(fetched(url))).stderr

    apply(devcluster, space, fetched(f"{origin}/friends/alice"))  # before there is a pipeline, or a pool
    pool.make(replicas=1)
    found = await_condition(devcluster, "FactSource", space, "friends", "Ready", ("False", "SourceNotAllowed"))
    assert f"JailPool sourced does not allow {origin}/friends/alice; ask its owner" in message(found, "Ready")
    await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "SourceNotAllowed"))
    assert asked == []

    pool.set(replicas=1, allowedSources=[f"{origin}/friends/"])
    pool.await_ready(1)
    await_condition(devcluster, "FactSource", space, "friends", "Ready", ("True", "Accepted"))
    assert set(asked) == {"/friends/alice"}
    served = release_of(pool)
    for url in (
        f"{origin}/secrets",
        "http://169.254.169.254/latest/meta-data/",
        f"http://localhost:{origin.rpartition(':')[2]}/friends/alice",
        f"{origin}/friends/../secrets",
    ):
        assert f"does not allow {url}" in refused(url)
    assert release_of(pool) == served, "what is refused changes nothing"
    assert knows(pool, f"{prefix}-ours")
    assert not knows(pool, f"{prefix}-theirs"), "who is not in the bundle cannot log in, and is no fact"

    pool.set(replicas=1)
    await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "SourceNotAllowed"))
    until(lambda: release_of(pool) not in {"", served}, "the member runs nothing without its facts", PATIENCE_SECONDS)
    until(
        lambda: all("--allow-source" not in arguments(pid) for pid in pool.monitors()),
        "nor may its monitor fetch them",
        PATIENCE_SECONDS,
    )
    assert set(asked) == {"/friends/alice"}


def release_of(pool: SmallPool) -> str:
    """Return the release that the pool's one member has in force."""
    return str(pool.rows()[0].get("release") or "")


def knows(pool: SmallPool, principal: str) -> bool:
    """Whether the monitor of the pool's one member has a Principal in force: applying it would not create it."""
    manifest = pool.directory.parent / "principal.json"
    manifest.write_text(json.dumps(resource("Principal", principal, publicKey="0" * 64)))
    member = pool.directory / f"{pool.name}-0"
    command = [str(member / "image/bin/shai"), "--socket", str(member / "run/monitor.sock"), "apply", "--dry-run"]
    command += ["--output", "json", "-f", str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    (change,) = (entry["change"] for entry in json.loads(done.stdout)["objects"] if entry["name"] == principal)
    return bool(change != "created")
