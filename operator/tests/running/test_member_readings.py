# SPDX-License-Identifier: BSD-2-Clause
"""kubectl shai logs, explain and audit on real members that two namespaces share: who reads, what is recorded."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import path_of
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import API, apply, await_condition, pipeline, policy, resource, task
from tests.running.small_pools import PATIENCE_SECONDS, ROLLOUT, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster
    from tests.running.small_pools import Site

OWN, OTHER = "readings", "readings-other"
OWNED = 'policy own {\n  read   :- sKeyIs("alice").\n  update :- sKeyIs("alice").\n}\n'
PRINTS = "printf 'pear%s\\n' tree-of-$0"
"""Prints a word that no object has as a whole: it is searched for in what the API server has stored."""


def word(space: str) -> str:
    return f"peartree-of-{space}"


class Reader:
    """A user with one role, who runs the plugin."""

    def __init__(self, cluster: Cluster, kubectl: Path, user: str) -> None:
        self.cluster, self.user = cluster, user
        self._path = f"{kubectl}:{os.environ['PATH']}"

    def shai(self, *arguments: str, space: str = OWN) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "shai", *arguments, f"--namespace={space}", f"--kubeconfig={self.cluster.kubeconfig}"],
            env={**os.environ, "PATH": self._path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def told(self, *arguments: str) -> dict[str, Any]:
        """Return what a command that succeeds prints as JSON."""
        done = self.shai(*arguments, "--output=json")
        assert done.returncode == 0, done
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("readings") / "log"
    with Operator(devcluster, log, "--images", str(site.images)) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def pool(devcluster: Cluster, site: Site) -> Iterator[SmallPool]:
    """Two members, one for each namespace. Each has run a task that printed its namespace's word."""
    made = SmallPool(devcluster, OWN, site, "read")
    for space in (OWN, OTHER):
        devcluster.try_kubectl("create", "namespace", space)
    made.set(replicas=2, allowedNamespaces={"names": [OWN, OTHER]})
    for space in (OWN, OTHER):
        prints = task("once", "own", command=["/bin/sh", "-c", PRINTS, space])
        apply(devcluster, space, policy("open"), policy("own", OWNED), prints)
        apply(devcluster, space, pipeline("p", ["once"], "/a/**", "open", pool="read", rollout=ROLLOUT))
    for space in (OWN, OTHER):
        await_condition(devcluster, "Pipeline", space, "p", "Ready", ("True", "Complete"), seconds=PATIENCE_SECONDS)
    yield made
    made.delete()
    made.await_gone()


@pytest.fixture(scope="module")
def reader(devcluster: Cluster, kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Return a user who may read what members keep for administrators, in one namespace."""
    account = devcluster.account(OWN, "reader", "--clusterrole=shai-member-reader", tmp_path_factory.mktemp("reader"))
    yield Reader(account, kubectl, f"system:serviceaccount:{OWN}:reader")
    account.close()


@pytest.fixture(scope="module")
def administrator(devcluster: Cluster, kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Return a user with all usual rights in one namespace."""
    account = devcluster.account(OWN, "owner", "--clusterrole=admin", tmp_path_factory.mktemp("owner"))
    yield Reader(account, kubectl, f"system:serviceaccount:{OWN}:owner")
    account.close()


def member(pool: SmallPool, space: str) -> str:
    return str(next(row["name"] for row in pool.rows() if row["namespace"] == space))


def readings(cluster: Cluster, space: str = OWN) -> list[dict[str, Any]]:
    return list(cluster.request("GET", path_of(API, "memberreadings", space)).json()["items"])


def test_a_reader_sees_what_a_task_has_printed_and_is_recorded(
    devcluster: Cluster, pool: SmallPool, reader: Reader
) -> None:
    shown = reader.shai("logs", "p/once")
    assert (shown.returncode, shown.stdout) == (0, f"{word(OWN)}\n"), shown
    own = member(pool, OWN)
    assert f"member: {own}, label: " in shown.stderr
    (run,) = devcluster.request("GET", path_of(API, "taskruns", OWN)).json()["items"]
    told = reader.told("logs", run["metadata"]["name"], "--tail=1")
    assert (told["member"], told["text"], told["shortened"]) == (own, f"{word(OWN)}\n", False)
    found = reader.told("audit", "p", "--kind=reading")
    assert {one["reader"] for one in found["records"]} == {reader.user}
    assert [(one["operation"], one.get("conduit", "")) for one in found["records"]][:2] == [
        ("log", "output:p/once"), ("log", "output:p/once"),
    ]  # fmt: skip
    assert (found["member"], found.get("fault", "")) == (own, "")
    assert readings(devcluster) == [], "the plugin removes what it has read"


def test_what_a_user_may_not_look_at_is_no_trouble(administrator: Reader) -> None:
    done = administrator.shai("doctor", "--output=json")
    findings = {one["object"]: one["reason"] for one in json.loads(done.stdout)["findings"]}
    assert (done.returncode, findings) == (0, {"jailpools": "NotRead", "principals": "NotRead"}), done


def test_explanations_and_errors_name_the_thing(pool: SmallPool, reader: Reader) -> None:
    explained = reader.shai("explain", "p", "--task=once", "--conduit=/a/1.txt")
    assert "/a/1.txt" in explained.stdout + explained.stderr
    for arguments, code, text in (
        (["logs", "q/once"], 1, f"namespace {OWN} has no Pipeline q"),
        (["logs", "p/once", "--member=read-9"], 1, f"no read-9 for this namespace; it has: {member(pool, OWN)}"),
        (["logs", "p/once", "--principal=bob"], 1, "as an administrator"),
    ):
        done = reader.shai(*arguments)
        assert (done.returncode, text in done.stderr) == (code, True), done
    assert reader.shai("logs", "p/once", "--principal=alice").stdout == f"{word(OWN)}\n", "the policies let her read it"


def test_no_namespace_reads_another_one_s_members(pool: SmallPool, reader: Reader) -> None:
    """They share a pool. Neither the member's name nor the other namespace gets a reader of one namespace more."""
    others = member(pool, OTHER)
    for arguments in (["logs", "p/once"], ["audit", "p"], ["explain", "p", "--task=once", "--conduit=/a/1.txt"]):
        done = reader.shai(*arguments, f"--member={others}")
        assert (done.returncode, "NoSuchMember" in done.stderr) == (1, True), done
        assert word(OTHER) not in done.stdout + done.stderr
        elsewhere = reader.shai(*arguments, space=OTHER)
        assert (elsewhere.returncode, "forbidden" in elsewhere.stderr) == (1, True), elsewhere


def test_the_usual_roles_do_not_read(administrator: Reader) -> None:
    done = administrator.shai("logs", "p/once")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "forbidden" in done.stderr
    assert "the role shai-member-reader has this right" in done.stderr


def test_nothing_that_was_read_is_stored_in_clear(
    devcluster: Cluster, reader: Reader, kubectl: Path, tmp_path: Path
) -> None:
    """Neither in the object, nor in the API server's store: its log of all writes, and its database."""
    keeps = tmp_path / "kubectl"
    keeps.write_text(f'#!/bin/sh\n[ "$1" = delete ] || exec {kubectl}/kubectl "$@"\n')
    keeps.chmod(0o755)
    assert reader.shai("logs", "p/once", f"--kubectl={keeps}").stdout == f"{word(OWN)}\n"
    (found,) = readings(devcluster)
    assert (found["spec"]["user"], len(found["status"]["sealed"]) > 1500) == (reader.user, True), "it has the answer"
    assert word(OWN) not in json.dumps(found)
    stored = [path.read_bytes() for path in (devcluster.kubeconfig.parent / "etcd").rglob("*") if path.is_file()]
    assert any(found["status"]["sealed"].encode() in content for content in stored)
    assert not any(word(OWN).encode() in content for content in stored)
    reader.cluster.kubectl("-n", OWN, "delete", "memberreading", found["metadata"]["name"])


def test_nobody_reads_in_another_user_s_name(reader: Reader) -> None:
    body = resource("MemberReading", "forged", user="olga", publicKey="a2V5", pipeline="p", log={"task": "once"})
    done = reader.cluster.try_kubectl("-n", OWN, "create", "-f", "-", stdin=json.dumps(body))
    assert (done.returncode, f"who creates the object: {reader.user}" in done.stderr) == (1, True), done


def test_a_namespace_that_may_not_use_the_pool_any_more_reads_nothing(pool: SmallPool, reader: Reader) -> None:
    pool.set(replicas=2, allowedNamespaces={"names": [OTHER]})
    refused: Callable[[], bool] = lambda: "NamespaceNotAllowed" in reader.shai("logs", "p/once").stderr  # noqa: E731
    until(refused, "its readings are refused", PATIENCE_SECONDS)
    pool.set(replicas=2, allowedNamespaces={"names": [OWN, OTHER]})
    until(lambda: reader.shai("logs", "p/once").returncode == 0, "and answered again", PATIENCE_SECONDS)
