# SPDX-License-Identifier: BSD-2-Clause
"""A backup, as docs/operations.md describes it, restored into a new cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import bundles, policies
from testing import cluster as clusters
from testing.cluster import ROOT, path_of
from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running.objects import (
    API,
    apply,
    apply_with_kubectl,
    await_condition,
    pipeline,
    policy,
    read,
    resource,
    serving,
    share,
    task,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testing.cluster import Cluster

SPACE, POOL = "restored", "restored"
OF_POOL = f"shai.dev/pool={POOL}"
OLD, NOW, BAD = (f"policy open {{ read :- true. update :- true. }} # {word}\n" for word in ("old", "now", "bad"))
_SECONDS = 300


@pytest.fixture(scope="module")
def backup(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """A pool whose policy had two texts in force, and whose third one was rejected."""
    folder = tmp_path_factory.mktemp("backup")
    devcluster.kubectl("create", "namespace", SPACE)
    with Operator(devcluster, folder / "log") as operator:
        # What kubectl notes at objects is in the backup, too.
        apply_with_kubectl(devcluster, SPACE, serving(SPACE, POOL), policy("open", OLD), *line())
        for text in (OLD, NOW):
            apply_with_kubectl(devcluster, SPACE, policy("open", text))
            wanted = named(text)
            until(lambda wanted=wanted: known(devcluster).get("stableRevision") == wanted, f"{wanted} is in force")
        operator.await_quiet()
    reject(devcluster)
    kinds = "policies,policyrevisions,jailpools,namespaces"
    yield [
        own(written(devcluster, folder / "objects.json", "get", kinds, "-A")),
        written(devcluster, folder / "releases.json", "-n", NAMESPACE, "get", "configmaps", "-l", OF_POOL),
        written(devcluster, folder / "secret.json", "-n", NAMESPACE, "get", "secret", "shai-authority"),
    ]
    # No operator takes the finalizer out any more.
    devcluster.kubectl("patch", "jailpool", POOL, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}')
    devcluster.delete("jailpool", POOL)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with clusters.start(tmp_path_factory.mktemp("other") / "data") as cluster:
        clusters.install(cluster)
        for space in (SPACE, NAMESPACE, "without-secret"):
            cluster.kubectl("create", "namespace", space)
        yield cluster


def line() -> tuple[dict[str, Any], dict[str, Any]]:
    return task("t", "open"), pipeline("p", ["t"], "/a/**", "open", pool=POOL)


def known(cluster: Cluster) -> dict[str, Any]:
    found = read(cluster, "Policy", SPACE, "open") or {}
    return found.get("status") or {}


def named(text: str) -> str:
    """Return the name of the revision with a text."""
    return policies.revision_name(policy("open", text))


def reject(cluster: Cluster) -> None:
    """Reject a third text, as a rollout that was rolled back does; no operator runs."""
    apply_with_kubectl(cluster, SPACE, policy("open", BAD))
    revisions = {"stableRevision": known(cluster)["stableRevision"], "rejectedRevision": named(BAD)}
    body = {"apiVersion": API, "kind": "Policy", "metadata": {"name": "open"}, "status": revisions}
    there = path_of(API, "policies", SPACE, "open") + "/status"
    how = {"content_type": "application/apply-patch+yaml", "fieldManager": "shai-operator-rollout", "force": "true"}
    assert cluster.request("PATCH", there, body, **how).is_success


def written(cluster: Cluster, file: Path, *command: str) -> Path:
    file.write_text(cluster.kubectl(*command, "-o", "json"))
    return file


def own(file: Path) -> Path:
    """Leave out what other tests have in the cluster: the other cluster has no namespaces for it."""
    listed = json.loads(file.read_text())
    names = {"namespace": SPACE}, {"name": SPACE}, {"name": POOL}
    kept = [entry for entry in listed["items"] if any(name.items() <= entry["metadata"].items() for name in names)]
    file.write_text(json.dumps({**listed, "items": kept}))
    return file


def begin(cluster: Cluster, *arguments: Path | str) -> subprocess.Popen[str]:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(ROOT / "operator")}
    command = [sys.executable, "-m", "shai_operator", "restore", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def restore(cluster: Cluster, *arguments: Path | str) -> subprocess.CompletedProcess[str]:
    with begin(cluster, *arguments) as process:
        told, errors = process.communicate(timeout=_SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, told, errors)


def revisions(cluster: Cluster) -> dict[str, int]:
    """Return the numbers of the policy's revisions, by text."""
    listed = cluster.request("GET", path_of(API, "policyrevisions", SPACE)).json()["items"]
    return {revision["spec"]["text"]: revision["spec"]["revision"] for revision in listed}


def await_collection(cluster: Cluster) -> None:
    """Wait until the garbage collector has looked at what is there: it deletes an object whose owner is unknown."""
    ghost = {"apiVersion": API, "kind": "Policy", "name": "never", "uid": "00000000-0000-0000-0000-000000000000"}
    made = policies.content_hash(policy("never", OLD))
    revision = resource(
        "PolicyRevision", f"never-{made[:32]}", policy="never", revision=1, hash=made, mode="Enforce", text=OLD
    )
    revision["metadata"]["ownerReferences"] = [ghost]
    apply(cluster, SPACE, revision)
    until(lambda: read(cluster, "PolicyRevision", SPACE, revision["metadata"]["name"]) is None, "it was collected")


def in_force(cluster: Cluster) -> str:
    release = share(read(cluster, "JailPool", "", POOL), SPACE)["stableRelease"]
    answer = cluster.request("GET", path_of("v1", "configmaps", NAMESPACE, release))
    return str(bundles.load(answer.json()).objects["Policy", "open"]["spec"]["text"])


def test_without_the_secret_nothing_is_restored(other: Cluster, backup: list[Path]) -> None:
    done = restore(other, *backup[:2])
    assert done.returncode == 1
    assert "neither the cluster nor the backup has the Secret shai-authority" in done.stderr
    assert read(other, "JailPool", "", POOL) is None


def test_the_new_cluster_goes_on_where_the_former_one_was(other: Cluster, backup: list[Path], tmp_path: Path) -> None:
    apply(other, SPACE, policy("open", BAD), *line())  # what is in the repository
    done = restore(other, *backup)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    await_collection(other)
    assert revisions(other) == {OLD: 1, NOW: 2}
    again = restore(other, *backup)
    assert (again.returncode, "restored" in again.stdout.replace(SPACE, "")) == (0, False), again.stdout
    with Operator(other, tmp_path / "log", has_pools=True) as operator:
        await_condition(other, "Policy", SPACE, "open", "RolledOut", ("False", "RolledBack"))
        operator.await_quiet()
        assert in_force(other) == NOW, "the text that was rejected there does not come into force here"
        assert revisions(other) == {OLD: 1, NOW: 2, BAD: 3}
        apply(other, SPACE, policy("open", OLD))
        until(lambda: in_force(other) == OLD, "an older text is in force again")
        assert revisions(other) == {OLD: 1, NOW: 2, BAD: 3}, "its revision is the one from the backup"
        waits = begin(other, *backup)
        assert waits.stdout is not None
        assert "waiting until operator" in waits.stdout.readline()
    assert waits.wait(_SECONDS) == 0, "it goes on when the operator has ended"
    waits.communicate()
    told = {event["reason"] for event in other.request("GET", path_of("v1", "events", SPACE)).json()["items"]}
    assert told.isdisjoint({"RevisionReplaced", "RevisionIgnored"})


def test_what_was_changed_in_the_backup_is_left_out(other: Cluster, backup: list[Path], tmp_path: Path) -> None:
    changed = json.loads(backup[0].read_text())
    for item in changed["items"]:
        if item["kind"] == "PolicyRevision":
            item["spec"]["revision"] += 10
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    done = restore(other, tmp_path / "changed.json", backup[2])
    assert done.returncode == 1
    assert done.stdout.count("left out: it does not have the seal of the Secret") == 2
    assert "2 objects were left out" in done.stderr


def test_without_a_backup_of_the_secret_an_administrator_vouches(
    other: Cluster, backup: list[Path], tmp_path: Path
) -> None:
    """Into a namespace of an operator of its own, whose Secret is a new one."""
    listed = json.loads(backup[0].read_text())
    moved = [item for item in listed["items"] if item["kind"] in ("Policy", "PolicyRevision")]
    for item in moved:
        item["metadata"]["namespace"] = "without-secret"
    (wrong, right) = [item for item in moved if item["kind"] == "PolicyRevision"]
    wrong["spec"]["text"] = BAD
    (tmp_path / "moved.json").write_text(json.dumps({"kind": "List", "items": moved}))
    done = restore(other, "--reseal", "--namespace=without-secret", tmp_path / "moved.json")
    assert done.returncode == 1
    assert f"{wrong['metadata']['name']}: left out: its name and hash are not those of its content" in done.stdout
    assert f"{right['metadata']['name']}: restored" in done.stdout
    second = restore(other, "--namespace=without-secret", tmp_path / "moved.json", backup[2])
    assert "does not have the seal" in second.stdout, "the one that counts has the new seal"
