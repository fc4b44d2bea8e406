# SPDX-License-Identifier: BSD-2-Clause
"""Users with rights in one namespace: real accounts with a real API server."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import bundles, policies
from shai_operator.reconcile.seals import ANNOTATION
from testing.cluster import ROOT, path_of
from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running.objects import (
    apply,
    apply_with_kubectl,
    await_condition,
    condition,
    events,
    message,
    pipeline,
    policy,
    read,
    resource,
    serving,
    share,
    task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster

KINDS = "policies,policyrevisions,tasks,pipelines,analysisruns,events"


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(devcluster, tmp_path_factory.mktemp("tenancy") / "log") as running:
        yield running


class Author:
    """A user who has the role shai-edit in a namespace of their own, and no other rights."""

    def __init__(self, cluster: Cluster, namespace: str, directory: Path) -> None:
        self.namespace = namespace
        self.cluster = cluster.account(namespace, "author", "--clusterrole=shai-edit", directory)
        may = "auth", "can-i", "create", "pipelines.shai.dev", "-n", namespace
        until(lambda: self.cluster.try_kubectl(*may).returncode == 0, "the account has its rights")

    def apply(self, *objects: dict[str, Any]) -> None:
        apply(self.cluster, self.namespace, *objects)

    def define(self, pool: str, *, whole: bool = True) -> None:
        """Apply a pipeline with or without its task."""
        tasks = [task("t", "open")] if whole else []
        self.apply(policy("open"), *tasks, pipeline("p", ["t"], "/a/**", "open", pool=pool))


@pytest.fixture
def author(devcluster: Cluster, new_namespace: Callable[[], str], tmp_path: Path) -> Iterator[Callable[[], Author]]:
    """Return a function that makes authors, each in a namespace of their own."""
    made: list[Author] = []

    def make() -> Author:
        made.append(Author(devcluster, new_namespace(), tmp_path))
        return made[-1]

    yield make
    for user in made:
        user.cluster.close()


@pytest.fixture
def pools(devcluster: Cluster) -> Iterator[list[str]]:
    """Names of pools, which are deleted at the end."""
    made: list[str] = []
    yield made
    for name in made:
        devcluster.delete("jailpool", name)


def of_pool(cluster: Cluster, pool: str, namespace: str) -> dict[str, Any]:
    """Return what a pool's status has of a namespace."""
    return share(read(cluster, "JailPool", "", pool), namespace)


def stable(cluster: Cluster, pool: str, namespace: str) -> str:
    """Return a namespace's release in force in a pool."""
    return str(of_pool(cluster, pool, namespace).get("stableRelease") or "")


def settled(cluster: Cluster, pool: str) -> bool:
    found = read(cluster, "JailPool", "", pool) or {}
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


@pytest.mark.parametrize("whole", [True, False])
def test_a_stranger_neither_takes_a_pool_nor_inherits_nor_blocks_it(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str], operator: Operator, *, whole: bool
) -> None:
    stranger, owner = author(), author()
    name = f"pool-{stranger.namespace}"
    pools.append(name)
    stranger.define(name, whole=whole)  # before the pool exists, and long before its owner
    await_condition(devcluster, "Pipeline", stranger.namespace, "p", "Accepted", ("False", "PoolMissing"))
    apply(devcluster, owner.namespace, serving(owner.namespace, name))
    refused = ("False", "NamespaceNotAllowed")
    await_condition(devcluster, "Pipeline", stranger.namespace, "p", "Accepted", refused)
    owner.define(name)
    await_condition(devcluster, "Pipeline", owner.namespace, "p", "RolledOut", ("True", "Complete"))
    release = stable(devcluster, name, owner.namespace)

    owner.cluster.kubectl("-n", owner.namespace, "delete", "pipeline", "p")
    until(lambda: stable(devcluster, name, owner.namespace) != release, "nothing is left to run")
    operator.await_quiet()
    assert (read(devcluster, "JailPool", "", name) or {})["status"]["serves"] == owner.namespace
    found = read(devcluster, "Pipeline", stranger.namespace, "p")
    assert condition(found, "Accepted") == refused
    assert owner.namespace not in message(found, "Accepted"), "whose it is is none of the stranger's business"
    assert not {"pool", "bundle", "members"} & set((found or {})["status"])
    owner.define(name)
    until(lambda: stable(devcluster, name, owner.namespace) == release, "the owner's definitions are back")


def test_namespaces_share_a_pool_and_its_owner_says_which(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str]
) -> None:
    first, second = author(), author()
    name = "of-both"
    pools.append(name)
    apply(devcluster, first.namespace, serving(first.namespace, name))
    for user in (first, second):
        user.define(name)
    await_condition(devcluster, "Pipeline", first.namespace, "p", "RolledOut", ("True", "Complete"))
    found = await_condition(devcluster, "Pipeline", first.namespace, "p", "Ready", ("False", "NoMembers"))
    assert message(found, "Ready") == (
        f"JailPool {name} has no member for this namespace; its owner can raise spec.replicas"
    )
    release = stable(devcluster, name, first.namespace)
    labelled = {"names": [first.namespace], "selector": {"matchLabels": {"team": second.namespace}}}
    apply(devcluster, first.namespace, serving(first.namespace, name, allowedNamespaces=labelled))
    await_condition(devcluster, "Pipeline", second.namespace, "p", "Accepted", ("False", "NamespaceNotAllowed"))
    devcluster.kubectl("label", "namespace", second.namespace, f"team={second.namespace}")
    await_condition(devcluster, "Pipeline", second.namespace, "p", "RolledOut", ("True", "Complete"))
    assert stable(devcluster, name, first.namespace) == release
    for user, other in ((first, second), (second, first)):
        told = user.cluster.kubectl("-n", user.namespace, "get", KINDS, "-o", "json")
        assert other.namespace not in told, "what one may read does not name the other"
    apply(devcluster, first.namespace, serving(second.namespace, name))
    found = await_condition(devcluster, "Pipeline", first.namespace, "p", "Accepted", ("False", "NamespaceNotAllowed"))
    until(lambda: condition(read(devcluster, "Pipeline", first.namespace, "p"), "RolledOut") == ("", ""), "it is out")
    assert "ask its owner" in message(found, "Accepted")
    devcluster.kubectl("label", "namespace", second.namespace, "team-")
    await_condition(devcluster, "Pipeline", second.namespace, "p", "RolledOut", ("True", "Complete"))


def test_only_modes_that_the_pool_allows_come_into_force(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str]
) -> None:
    user = author()
    name = f"pool-{user.namespace}"
    pools.append(name)
    apply(devcluster, user.namespace, serving(user.namespace, name))
    user.apply(policy("open"), task("t", "open"))
    line = pipeline("p", ["t"], "/a/**", "open", pool=name, mode="baseline")
    user.apply(line)
    space = user.namespace
    await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "ModeNotAllowed"))
    assert not stable(devcluster, name, space)
    measuring = resource("Benchmark", "cost", pipeline="p", modes=["baseline", "shai"])
    user.apply(measuring)
    await_condition(devcluster, "Benchmark", space, "cost", "Succeeded", ("Unknown", "ModeNotAllowed"))
    refused = user.cluster.try_kubectl(
        "patch", "jailpool", name, "--type=merge", "-p", '{"spec": {"allowedModes": ["shai", "baseline"]}}'
    )
    assert "forbidden" in refused.stderr

    apply(devcluster, space, serving(space, name, allowedModes=["shai", "baseline"]))
    await_condition(devcluster, "Pipeline", space, "p", "RolledOut", ("True", "Complete"))
    await_condition(devcluster, "Benchmark", space, "cost", "Succeeded", ("Unknown", "Pending"))
    release = stable(devcluster, name, space)
    apply(devcluster, space, serving(space, name))
    until(lambda: stable(devcluster, name, space) != release, "what is no longer allowed runs no longer")

    user.apply({**line, "spec": {**line["spec"], "mode": "shai"}})
    await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("True", "Accepted"))
    user.apply(policy("open", mode="Audit"))
    found = await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "ModeNotAllowed"))
    assert "Policy open is in mode Audit" in message(found, "Accepted")


def test_only_runtimes_that_the_pool_gives_come_into_force(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str]
) -> None:
    user, stranger = author(), author()
    name, other = f"pool-{user.namespace}", f"pool-{stranger.namespace}"
    pools += [name, other]
    theirs = {"name": "theirs", "paths": ["/srv/theirs"]}
    apply(
        devcluster, user.namespace, serving(user.namespace, name), serving(stranger.namespace, other, runtimes=[theirs])
    )
    for wrong, says in (
        ({"runtime": ["/"]}, "the owner of the pool gives the runtime's paths, in spec.runtimes of the JailPool"),
        ({"runtimeName": "../x"}, "spec.runtimeName in body should match"),
        ({"runtimeName": "$(DATA)"}, "spec.runtimeName in body should match"),
    ):
        done = user.cluster.try_kubectl(
            "-n", user.namespace, "apply", "-f", "-", stdin=json.dumps(task("t", "open", **wrong))
        )
        assert says in done.stderr
    giving = '{"spec": {"runtimes": [{"name": "theirs", "paths": ["/srv/theirs"]}]}}'
    assert "forbidden" in user.cluster.try_kubectl("patch", "jailpool", name, "--type=merge", "-p", giving).stderr

    user.apply(
        policy("open"), task("t", "open", runtimeName="theirs"), pipeline("p", ["t"], "/a/**", "open", pool=name)
    )
    space = user.namespace
    found = await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "RuntimeMissing"))
    assert f"task t names runtime theirs, and JailPool {name} has the runtimes system; name another" in message(
        found, "Accepted"
    )
    assert not stable(devcluster, name, space)
    user.apply(task("t", "open"))
    await_condition(devcluster, "Pipeline", space, "p", "RolledOut", ("True", "Complete"))
    release = stable(devcluster, name, space)

    apply(devcluster, space, serving(space, name, runtimes=[theirs]))
    until(lambda: stable(devcluster, name, space) != release, "what names a runtime that is gone runs no longer")
    found = await_condition(devcluster, "Pipeline", space, "p", "Accepted", ("False", "RuntimeMissing"))
    assert "/srv/theirs" not in json.dumps(found)


@contextmanager
def former_definition(cluster: Cluster) -> Iterator[None]:
    """Have the API server take Tasks that list the paths of their runtimes, as it once did."""
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/runtime/x-kubernetes-validations"
    cluster.kubectl(
        "patch", "crd", "tasks.shai.dev", "--type=json", "-p", json.dumps([{"op": "remove", "path": place}])
    )
    try:
        yield
    finally:
        bases = str(ROOT / "crds" / "bases" / "tasks.yaml")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", bases)
        another = json.dumps(task("another", "open", runtime=["/"]))
        trying = ("-n", "default", "create", "--dry-run=server", "-f", "-")
        until(lambda: cluster.try_kubectl(*trying, stdin=another).returncode != 0, "it refuses them again")


def test_a_stored_task_that_lists_the_paths_of_its_runtime_says_what_to_do(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str], operator: Operator
) -> None:
    user = author()
    name, space = f"pool-{user.namespace}", user.namespace
    pools.append(name)
    former = task("t", "open", runtime=["/bin", "/lib"])
    del former["spec"]["runtimeName"]

    def stores() -> bool:
        return devcluster.try_kubectl("-n", space, "apply", "-f", "-", stdin=json.dumps(former)).returncode == 0

    operator.stop()
    devcluster.remove_webhooks()  # an operator of the former version would admit it
    with former_definition(devcluster):
        until(stores, "the API server stores it")
    operator.start()
    apply(devcluster, space, serving(space, name), policy("open"), pipeline("p", ["t"], "/a/**", "open", pool=name))
    for kind, called, of in (("Task", "t", "Ready"), ("Pipeline", "p", "Accepted")):
        found = await_condition(devcluster, kind, space, called, of, ("False", "Invalid"))
        assert "spec.runtime: a task no longer chooses the paths of its runtime; write spec.runtimeName" in message(
            found, of
        )
    apply_with_kubectl(user.cluster, space, task("t", "open"))  # in the way in which it was applied before
    await_condition(devcluster, "Pipeline", space, "p", "RolledOut", ("True", "Complete"))


def sealed(cluster: Cluster, namespace: str, name: str) -> str:
    """Return the seal of a PolicyRevision; empty when it has none, or does not exist."""
    found = read(cluster, "PolicyRevision", namespace, name) or {"metadata": {}}
    return str((found["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def in_force(cluster: Cluster, pool: str, namespace: str) -> str:
    """Return the text of policy open in a namespace's release in a pool."""
    answer = cluster.request("GET", path_of("v1", "configmaps", NAMESPACE, stable(cluster, pool, namespace)))
    return str(bundles.load(answer.json()).objects["Policy", "open"]["spec"]["text"])


def test_a_forged_revision_never_comes_into_force(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str], operator: Operator, tmp_path: Path
) -> None:
    user = author()
    space, name = user.namespace, f"pool-{user.namespace}"
    pools.append(name)
    # Admission takes revisions from nobody but the operator: as if it did not, this account has the operator's right.
    rights = "--verb=get,list,create,update,patch,delete,operate", "--resource=policyrevisions.shai.dev"
    devcluster.kubectl("create", "clusterrole", space, *rights)
    forger = devcluster.account(space, "forger", f"--clusterrole={space}", tmp_path)
    devcluster.kubectl(
        "create", "clusterrolebinding", space, f"--clusterrole={space}", f"--serviceaccount={space}:forger"
    )
    good = policy("open")
    content = policies.content_hash(good)
    foreign = {"policy": "open", "revision": 7, "hash": content, "mode": "Enforce", "text": "policy open { }"}
    forged = resource("PolicyRevision", policies.revision_name(good), **foreign)
    created = until(
        lambda: forger.try_kubectl("-n", space, "create", "-f", "-", stdin=json.dumps(forged)).stdout, "it is forged"
    )
    assert "created" in created

    apply(devcluster, space, serving(space, name))
    user.define(name)
    await_condition(devcluster, "Pipeline", space, "p", "RolledOut", ("True", "Complete"))
    assert in_force(devcluster, name, space) == good["spec"]["text"]
    made = read(devcluster, "PolicyRevision", space, policies.revision_name(good))
    assert made is not None
    assert made["spec"]["text"] == good["spec"]["text"]
    until(lambda: "RevisionReplaced" in [event["reason"] for event in events(devcluster, space, "open")], "an event")

    seal = made["metadata"]["annotations"][ANNOTATION]
    pretender = resource(
        "PolicyRevision", "open-" + "0123456789abcdef" * 2, **{**foreign, "hash": "0123456789abcdef" * 4}
    )
    pretender["metadata"]["annotations"] = {ANNOTATION: seal}
    apply(forger, space, pretender)
    forger.kubectl("-n", space, "annotate", "policyrevision", made["metadata"]["name"], f"{ANNOTATION}-")
    until(lambda: sealed(devcluster, space, made["metadata"]["name"]), "the one without its seal is replaced")
    until(lambda: "RevisionIgnored" in [event["reason"] for event in events(devcluster, space, "open")], "an event")
    operator.await_quiet()
    assert in_force(devcluster, name, space) == good["spec"]["text"]
    await_condition(devcluster, "Pipeline", space, "p", "RolledOut", ("True", "Complete"))
    again = sealed(devcluster, space, made["metadata"]["name"])
    assert again != seal, "its number is another one"
    operator.restart()
    operator.await_quiet()
    assert in_force(devcluster, name, space) == good["spec"]["text"]
    assert sealed(devcluster, space, made["metadata"]["name"]) == again, "the next operator has the same secret"
    forger.close()
    devcluster.kubectl("delete", "clusterrolebinding,clusterrole", space)


def test_a_pool_from_before_there_were_allowed_namespaces_keeps_its_own(
    devcluster: Cluster, author: Callable[[], Author], pools: list[str], operator: Operator
) -> None:
    stranger, owner = author(), author()
    name = f"pool-{stranger.namespace}"
    pools.append(name)
    stranger.define(name)
    apply(devcluster, owner.namespace, serving(owner.namespace, name))
    owner.define(name)
    await_condition(devcluster, "Pipeline", owner.namespace, "p", "RolledOut", ("True", "Complete"))
    release = stable(devcluster, name, owner.namespace)
    operator.stop()
    try:
        # as an earlier version of the operator has left it
        former = [
            {"op": "remove", "path": "/status/namespaces"},
            {"op": "add", "path": "/status/stableRelease", "value": release},
        ]
        path = f"/apis/shai.dev/v1alpha1/jailpools/{name}"
        kind = "application/json-patch+json"
        assert devcluster.request("PATCH", f"{path}/status", former, content_type=kind).status_code == 200
        forget = [{"op": "remove", "path": "/spec/allowedNamespaces"}]
        assert devcluster.request("PATCH", path, forget, content_type=kind).status_code == 200
    finally:
        operator.start()
    until(lambda: stable(devcluster, name, owner.namespace) == release, "the pool knows whose it is")
    until(lambda: settled(devcluster, name), "the pool has been looked at")
    await_condition(devcluster, "Pipeline", owner.namespace, "p", "Accepted", ("True", "Accepted"))
    await_condition(devcluster, "Pipeline", stranger.namespace, "p", "Accepted", ("False", "NamespaceNotAllowed"))
