# SPDX-License-Identifier: BSD-2-Clause
"""Analyses in shards, with a real API server and a real member.

The embedded cluster runs no pods: the test plays the Job controller, and runs the containers' command as processes.
"""

from __future__ import annotations

import base64
import os
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile.results import TALLY
from testing.cluster import ROOT, path_of
from testing.faulty_server import FaultyServer, held, passed_on
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import apply, await_condition, message, pipeline, policy, read, resource, task
from tests.running.small_pools import PATIENCE_SECONDS, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from aiohttp import web

    from testing.cluster import Cluster
    from tests.running.small_pools import Site

SHARDS = "shai-analysis"
OWNED = "policy owned(owner) { read :- sKeyIs(owner). update :- sKeyIs(owner). }"
PEOPLE = ("ada", "bob", "cyd")


@pytest.fixture(scope="module")
def server(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with FaultyServer(devcluster.kubeconfig, tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def operator(
    devcluster: Cluster, server: FaultyServer, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("shards") / "log"
    options = ["--images", str(site.images), "--identity", "test", "--shard-image", "example.org/shai-operator"]
    made = Operator(devcluster, log, *options, kubeconfig=server.kubeconfig)
    devcluster.kubectl("apply", "-k", str(ROOT / "deploy" / "shards"))
    with made:
        yield made


@pytest.fixture(scope="module")
def pool(devcluster: Cluster, new_namespace: Callable[[], str], site: Site) -> Iterator[SmallPool]:
    """Yield a pool with a pipeline that expects a few instances, analysed."""
    source = site.base / "documents"
    for person in PEOPLE:
        (source / "inbox" / person).mkdir(parents=True)
        (source / "inbox" / person / "1").write_text(person)
    made = SmallPool(devcluster, new_namespace(), site, "sharded")
    made.set(replicas=1, data={"source": str(source)})
    readers = []
    for person in PEOPLE:  # each is an instance
        readers.append(task(f"reader-{person}", "", reads=["files"]))
        readers[-1]["spec"]["taint"] = {"name": "owned", "arguments": {"owner": person}}
    files = pipeline("p", [f"reader-{person}" for person in PEOPLE], "/inbox/{owner}/**", "owned", pool="sharded")
    del files["spec"]["conduits"][0]["directory"]
    files["spec"]["conduits"][0]["paths"][0]["policy"]["arguments"] = {"owner": "{owner}"}
    apply(devcluster, made.namespace, policy("owned", OWNED), *readers, files)
    await_condition(
        devcluster, "Pipeline", made.namespace, "p", "Analyzed", ("True", "Complete"), seconds=PATIENCE_SECONDS
    )
    yield made
    made.delete()
    made.await_gone()


def analyze(pool: SmallPool, name: str, **spec: Any) -> None:
    apply(pool.cluster, pool.namespace, resource("AnalysisRun", name, pipeline="p", **spec))


def ended(pool: SmallPool, name: str, status: str, reason: str) -> dict[str, Any]:
    return await_condition(
        pool.cluster, "AnalysisRun", pool.namespace, name, "Succeeded", (status, reason), seconds=PATIENCE_SECONDS
    )


def jobs(cluster: Cluster) -> list[dict[str, Any]]:
    return list(cluster.request("GET", path_of("batch/v1", "jobs", SHARDS)).json()["items"])


def begun(cluster: Cluster) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        return next((job for job in jobs(cluster) if not job["spec"]["suspend"]), None)

    job: dict[str, Any] = until(found, "the Job begins", PATIENCE_SECONDS)
    return job


def of_job(job: dict[str, Any]) -> dict[str, str]:
    """Return the paths of what goes with a Job."""
    name = job["metadata"]["name"]
    return {
        "secret": path_of("v1", "secrets", SHARDS, name),
        "policy": path_of("networking.k8s.io/v1", "networkpolicies", SHARDS, name),
    }


def await_nothing_left(cluster: Cluster, job: dict[str, Any]) -> None:
    until(lambda: jobs(cluster) == [], "the Job goes")
    for path in of_job(job).values():
        until(lambda path=path: cluster.request("GET", path).status_code == 404, f"{path} goes with it")


def pods(cluster: Cluster, job: dict[str, Any], tmp_path: Path) -> list[subprocess.Popen[bytes]]:
    """Run the containers of a Job, with what is mounted into them."""
    template = job["spec"]["template"]["spec"]
    (container,) = template["containers"]
    (secret,) = (one["secret"] for one in template["volumes"] if "secret" in one)
    assert secret["secretName"] == job["metadata"]["name"]
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for file, content in cluster.request("GET", of_job(job)["secret"]).json()["data"].items():
        (mounted / file).write_bytes(base64.b64decode(content))
    (mount,) = (one["mountPath"] for one in container["volumeMounts"] if one["name"] == "tls")
    words = [str(mounted) if word == mount else word for word in (*container["command"], *container["args"])]
    environment = {one["name"]: one["value"] for one in container["env"]} | {"PATH": os.environ["PATH"]}
    return [
        subprocess.Popen(words, env={**environment, "JOB_COMPLETION_INDEX": str(index)})
        for index in range(job["spec"]["completions"])
    ]


def what_was_found(run: dict[str, Any]) -> dict[str, Any]:
    """Return the results in the status of a run, without times."""
    status = run["status"]
    members = [
        {key: row[key] for key in ("name", "state", "conduits", "classes", "instances")} for row in status["members"]
    ]
    return {key: status[key] for key in (*TALLY, "accesses", "warnings", "warningsTotal", "bundle")} | {
        "members": members
    }


def test_two_shards_find_what_the_member_finds_by_itself(pool: SmallPool, tmp_path: Path) -> None:
    analyze(pool, "own", full=True)
    own = ended(pool, "own", "True", "Complete")
    assert (own["status"]["expected"], own["status"]["granted"]) == (9, 3)
    analyze(pool, "sharded", shards={"count": 2})
    job = begun(pool.cluster)
    policy = pool.cluster.request("GET", of_job(job)["policy"]).json()["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= job["spec"]["template"]["metadata"]["labels"].items()
    assert (policy.get("ingress", []), len(policy["egress"])) == ([], 1)
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert {"emptyDir", "secret"} == {next(key for key in one if key != "name") for one in pod["volumes"]}
    running = pods(pool.cluster, job, tmp_path)
    sharded = ended(pool, "sharded", "True", "Complete")
    assert [one.wait() for one in running] == [0, 0]
    assert what_was_found(sharded) == what_was_found(own)
    await_nothing_left(pool.cluster, job)


def test_a_job_that_fails_leaves_the_last_result_in_force(pool: SmallPool) -> None:
    analyze(pool, "failing", shards={"count": 2})
    job = begun(pool.cluster)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": "True", "reason": "FailedIndexes", "message": "of rack-2", "lastTransitionTime": now}
        for kind in ("FailureTarget", "Failed")
    ]
    path = path_of("batch/v1", "jobs", SHARDS, job["metadata"]["name"]) + "/status"
    body = {**job, "status": {"startTime": now, "failed": 2, "failedIndexes": "0", "conditions": conditions}}
    answer = pool.cluster.request("PUT", path, body)
    assert answer.status_code == 200, answer.text
    failed = ended(pool, "failing", "False", "Failed")
    told = message(failed, "Succeeded")
    assert "the Job of its shards failed" in told
    assert "stays in force" in told
    assert "rack-2" not in str(failed["status"]), "what the Job says is for the operator's log"
    await_nothing_left(pool.cluster, job)
    analyzed = read(pool.cluster, "Pipeline", pool.namespace, "p")
    assert "AnalysisRun failing" in message(analyzed, "Analyzed")


def test_a_run_that_is_deleted_ends_its_pods(pool: SmallPool) -> None:
    analyze(pool, "deleted", shards={"count": 2})
    job = begun(pool.cluster)
    pool.cluster.kubectl("-n", pool.namespace, "delete", "analysisrun", "deleted")
    await_nothing_left(pool.cluster, job)


@pytest.fixture
def of_somebody(pool: SmallPool) -> Iterator[str]:
    """Yield the name of a Job with the operator's labels, which the operator did not make."""
    labels = {"app.kubernetes.io/name": "shai-analysis", "app.kubernetes.io/part-of": "shai"}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "own", "image": "example.org/own"}]}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "of-somebody", "namespace": SHARDS, "labels": labels},
        "spec": {"suspend": True, "template": template},
    }
    assert pool.cluster.request("POST", path_of("batch/v1", "jobs", SHARDS), body).status_code == 201
    yield "of-somebody"
    pool.cluster.kubectl("-n", SHARDS, "delete", "job", "of-somebody")


async def _held_secrets(request: web.Request) -> None:
    """The operator is still making what goes with the Job when it is killed."""
    if request.method == "POST" and request.path.endswith("/secrets"):
        await held(request)


def of_operator(cluster: Cluster) -> list[dict[str, Any]]:
    return [job for job in jobs(cluster) if job["metadata"]["name"] != "of-somebody"]


def exists(cluster: Cluster, path: str) -> bool:
    return cluster.request("GET", path).status_code == 200


@pytest.mark.parametrize("released", [False, True], ids=["suspended", "released"])
def test_what_a_killed_operator_has_left_goes(
    pool: SmallPool, operator: Operator, server: FaultyServer, of_somebody: str, *, released: bool
) -> None:
    cluster = pool.cluster
    server.fault = passed_on if released else _held_secrets
    analyze(pool, "left", shards={"count": 2})

    def made() -> dict[str, Any] | None:
        there = (job for job in of_operator(cluster) if exists(cluster, of_job(job)["policy"]))
        return next((job for job in there if job["spec"]["suspend"] is not released), None)

    job: dict[str, Any] = until(made, "the Job is made", PATIENCE_SECONDS)
    operator.kill()
    server.fault = passed_on
    cluster.kubectl("-n", pool.namespace, "delete", "analysisrun", "left")
    assert exists(cluster, of_job(job)["secret"]) is released
    operator.start()
    until(lambda: of_operator(cluster) == [], "the Job goes")
    for path in of_job(job).values():
        until(lambda path=path: not exists(cluster, path), f"{path} goes with it")
    assert [one["metadata"]["name"] for one in jobs(cluster)] == [of_somebody], "it is not the operator's"
