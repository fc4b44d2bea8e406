# SPDX-License-Identifier: BSD-2-Clause
"""PolicyRevisions and statuses are the operator's, whatever roles a namespace gives its users."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from crds import kinds
from crds.tests.objects import REVISION, good, path
from testing.cluster import path_of
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx2

    from testing.cluster import Cluster

MERGE = "application/merge-patch+json"
RESOURCES = {kind.kind: kind for kind in kinds.ALL if kind.status is not None}
"""The kinds with a status."""


@pytest.fixture(scope="module")
def space(new_namespace: Callable[[], str]) -> str:
    return new_namespace()


@pytest.fixture(scope="module")
def owner(devcluster: Cluster, space: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The owner of a namespace: RBAC allows them everything in it."""
    user = devcluster.account(space, "owner", "--clusterrole=cluster-admin", tmp_path_factory.mktemp("owner"))
    until(lambda: user.request("POST", path("Policy", space), good("Policy"), dryRun="All").is_success, "may create")
    revision = good("PolicyRevision")
    until(
        lambda: not user.request("POST", path("PolicyRevision", space), revision, dryRun="All").is_success,
        "the API server knows the admission policy",
    )
    yield user
    user.close()


def made(cluster: Cluster, kind: str, space: str, obj: dict[str, Any] | None = None) -> dict[str, Any]:
    """Create a valid object as the cluster's administrator, if it is not there."""
    body = obj or good(kind)
    answer = cluster.request("POST", path(kind, space), body)
    assert answer.status_code in (201, 409), answer.text
    found: dict[str, Any] = cluster.request("GET", path(kind, space, body["metadata"]["name"])).json()
    return found


def refused(answer: httpx2.Response) -> bool:
    return answer.status_code == 403 and "written by Shai's operator only" in answer.text


def test_nobody_else_makes_a_revision(owner: Cluster, space: str) -> None:
    assert refused(owner.request("POST", path("PolicyRevision", space), good("PolicyRevision")))
    applied = path("PolicyRevision", space, REVISION)
    how = {"content_type": "application/apply-patch+yaml", "fieldManager": "owner"}
    assert refused(owner.request("PATCH", applied, good("PolicyRevision"), **how))


def test_nobody_else_changes_or_deletes_a_revision(devcluster: Cluster, owner: Cluster, space: str) -> None:
    revision = made(devcluster, "PolicyRevision", space)
    there = path("PolicyRevision", space, REVISION)
    changes: list[dict[str, Any]] = [
        {"annotations": {"shai.dev/seal": "0"}},
        {"labels": {"a": "b"}},
        {"finalizers": ["example.org/mine"]},
        {"ownerReferences": []},
    ]
    for metadata in changes:
        assert refused(owner.request("PATCH", there, {"metadata": metadata}, content_type=MERGE)), metadata
    assert refused(owner.request("PUT", there, revision))
    assert refused(owner.request("DELETE", there))
    assert refused(owner.request("DELETE", path("PolicyRevision", space)))  # the whole collection
    assert devcluster.request("GET", there).json()["metadata"]["uid"] == revision["metadata"]["uid"]
    assert owner.request("GET", there).is_success


@pytest.mark.parametrize("kind", RESOURCES)
def test_nobody_else_writes_a_status(devcluster: Cluster, owner: Cluster, space: str, kind: str) -> None:
    obj = made(devcluster, kind, space)
    there = path(kind, space, obj["metadata"]["name"]) + "/status"
    body = {"status": {"observedGeneration": 7}}
    answer = owner.request("PATCH", there, body, content_type=MERGE)
    # RBAC refuses what is not in the namespace.
    assert refused(answer) if RESOURCES[kind].namespaced else answer.status_code == 403
    assert devcluster.request("PATCH", there, body, content_type=MERGE, dryRun="All").is_success, "an administrator"
    if RESOURCES[kind].namespaced:
        labelled = {"metadata": {"labels": {"example.org/mine": "1"}}}
        assert owner.request("PATCH", there.removesuffix("/status"), labelled, content_type=MERGE).is_success


@pytest.mark.usefixtures("owner")
def test_the_right_is_asked_for_in_the_whole_cluster(devcluster: Cluster, space: str, tmp_path: Path) -> None:
    """As the operator has it; in one namespace the same verb is no use."""
    rule = {"apiGroups": ["shai.dev"], "resources": ["policyrevisions"], "verbs": ["create", "operate"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": space},
        "rules": [rule],
    }
    devcluster.kubectl("create", "-f", "-", stdin=json.dumps(role))
    user = devcluster.account(space, "operating", f"--clusterrole={space}", tmp_path)

    def create() -> httpx2.Response:
        return user.request("POST", path("PolicyRevision", space), good("PolicyRevision"), dryRun="All")

    try:
        until(lambda: "forbidden: User" not in create().text, "RBAC allows it to create them")
        assert refused(create())
        subject = f"--serviceaccount={space}:operating"
        devcluster.kubectl("create", "clusterrolebinding", space, f"--clusterrole={space}", subject)
        until(lambda: not refused(create()), "with the right in the whole cluster it may")
    finally:
        user.close()
        devcluster.kubectl("delete", "clusterrolebinding,clusterrole", space)


def revision_of(cluster: Cluster, space: str, name: str) -> tuple[str, str]:
    """Make a Policy with a revision, which it owns as the operator's do; return both paths."""
    policy = made(cluster, "Policy", space, good("Policy", name))
    revision = good("PolicyRevision", REVISION.replace("p-", f"{name}-", 1), ("policy", name))
    reference = {"apiVersion": "shai.dev/v1alpha1", "kind": "Policy", "name": name, "uid": policy["metadata"]["uid"]}
    revision["metadata"]["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    made(cluster, "PolicyRevision", space, revision)
    return path("Policy", space, name), path("PolicyRevision", space, revision["metadata"]["name"])


@pytest.mark.parametrize("how", ["Background", "Foreground"])
def test_revisions_go_with_their_policy(devcluster: Cluster, owner: Cluster, space: str, how: str) -> None:
    policy, revision = revision_of(devcluster, space, how.lower())
    assert owner.request("DELETE", policy, propagationPolicy=how).is_success
    for gone in (policy, revision):
        until(lambda gone=gone: devcluster.request("GET", gone).status_code == 404, f"{gone} is deleted")


def test_revisions_can_stay_when_their_policy_goes(devcluster: Cluster, owner: Cluster, space: str) -> None:
    policy, revision = revision_of(devcluster, space, "orphan")
    assert owner.request("DELETE", policy, propagationPolicy="Orphan").is_success
    until(lambda: devcluster.request("GET", policy).status_code == 404, "the policy is deleted")
    assert "ownerReferences" not in devcluster.request("GET", revision).json()["metadata"]


def test_revisions_go_with_their_namespace(devcluster: Cluster, new_namespace: Callable[[], str]) -> None:
    space = new_namespace()
    revision_of(devcluster, space, "p")
    devcluster.kubectl("delete", "namespace", space, "--wait=false")
    there = path_of("v1", "namespaces", "", space)
    until(lambda: devcluster.request("GET", there).status_code == 404, "the namespace is deleted")


@pytest.mark.usefixtures("owner")
def test_the_garbage_collector_changes_no_content(devcluster: Cluster, space: str) -> None:
    _, revision = revision_of(devcluster, space, "kept")
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    groups = ("--as-group=system:serviceaccounts", "--as-group=system:authenticated")
    name = revision.rpartition("/")[2]

    def patch(metadata: dict[str, Any]) -> str:
        body = json.dumps({"metadata": metadata})
        patched = "-n", space, "patch", "policyrevision", name, "--type=merge", "-p", body, f"--as={collector}", *groups
        return devcluster.try_kubectl(*patched, "--dry-run=server").stderr

    assert patch({"ownerReferences": None}) == ""
    for metadata in ({"annotations": {"shai.dev/seal": "0"}}, {"labels": {"a": "b"}}):
        assert "written by Shai's operator only" in patch(metadata), metadata
