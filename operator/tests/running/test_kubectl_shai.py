# SPDX-License-Identifier: BSD-2-Clause
"""The plugin of kubectl against an API server; the statuses are written as the operator writes them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import path_of
from tests.running.objects import API, apply, pipeline, policy, read, resource, serving, task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster

NAMESPACE = "plugin"
NOW = "2026-03-01T12:00:00Z"


@pytest.fixture
def shai(devcluster: Cluster, kubectl: Path, objects: None) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs ``kubectl shai`` in the namespace."""
    del objects

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        path = f"{kubectl}:{os.environ['PATH']}"
        return subprocess.run(
            ["kubectl", "shai", *arguments, f"--namespace={NAMESPACE}", f"--kubeconfig={devcluster.kubeconfig}"],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def objects(devcluster: Cluster) -> Iterator[None]:
    devcluster.try_kubectl("create", "namespace", NAMESPACE)
    revisions = [
        revision(number, text)
        for number, text in ((1, "policy open { read :- true. }"), (2, "policy open { update :- true. }"))
    ]
    made = [
        serving(NAMESPACE, "plugin-pool"),
        policy("open", "policy open { update :- true. }"),
        task("once", "open"),
        pipeline("p", ["once"], "/a/**", "open", pool="plugin-pool"),
        resource("TaskRun", "again", pipeline="p", task="once"),
    ]
    apply(devcluster, NAMESPACE, *made)
    apply(devcluster, NAMESPACE, *revisions)
    yield
    devcluster.kubectl("-n", NAMESPACE, "delete", "shai", "--all", "--wait=false")
    devcluster.kubectl("delete", "jailpool", "plugin-pool", "--wait=false", "--ignore-not-found")


def revision(number: int, text: str) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    spec = {"policy": "open", "revision": number, "hash": digest, "text": text, "mode": "Enforce"}
    return resource("PolicyRevision", f"open-{digest[:32]}", **spec)


def says(cluster: Cluster, kind: str, name: str, *conditions: tuple[str, str, str, str], **more: Any) -> None:
    """Write a status."""
    scope = "" if kind == "jailpools" else NAMESPACE
    rows = [
        {"type": of, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW}
        for of, status, reason, message in conditions
    ]
    url = f"{path_of(API, kind, scope, name)}/status"
    generation = cluster.request("GET", path_of(API, kind, scope, name)).json()["metadata"]["generation"]
    body = {"status": {"observedGeneration": generation, "conditions": rows, **more}}
    answer = cluster.request("PATCH", url, body, content_type="application/merge-patch+json")
    assert answer.status_code == 200, answer.text


ACCEPTED = ("Accepted", "True", "Accepted", "")


@pytest.mark.parametrize(
    ("condition", "code", "text"),
    [
        (("RolledOut", "True", "Complete", "all members have it"), 0, "p: Complete: all members have it"),
        (("RolledOut", "False", "RolledBack", "too many\x1b[31m denials"), 1, "RolledBack: too many\\x1b[31m denials"),
        (("RolledOut", "False", "Paused", "spec.rollout.paused"), 1, "Paused: spec.rollout.paused"),
        (("RolledOut", "False", "Progressing", "goes on"), 0, "Progressing, step 1 of 2, 1 members: goes on"),
    ],
)
def test_rollout_status(
    devcluster: Cluster,
    shai: Callable[..., subprocess.CompletedProcess[str]],
    condition: tuple[str, str, str, str],
    code: int,
    text: str,
) -> None:
    says(devcluster, "pipelines", "p", ACCEPTED, condition, rollout={"step": 1, "steps": 2, "members": 1})
    found = shai("rollout", "status", "p", "--watch=false")
    assert (found.returncode, text in found.stdout) == (code, True), found
    told = json.loads(shai("rollout", "status", "p", "--watch=false", "--output=json").stdout)
    assert (told["reason"], told["ended"]) == (condition[2], condition[2] != "Progressing")


def test_a_rollout_is_waited_for_until_the_time_is_over(
    devcluster: Cluster, shai: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    says(devcluster, "pipelines", "p", ACCEPTED, ("RolledOut", "False", "Progressing", "goes on"))
    found = shai("rollout", "status", "p", "--timeout=2s")
    assert (found.returncode, "had not ended when the time was over" in found.stderr) == (1, True), found
    devcluster.kubectl("-n", NAMESPACE, "patch", "pipeline", "p", "--type=merge", "-p", '{"spec": {"mode": "dynamic"}}')
    says_nothing = shai("rollout", "status", "p", "--watch=false")
    assert "Pending: the operator has not looked" in says_nothing.stdout or "Progressing" in says_nothing.stdout


def test_pause_resume_and_undo(devcluster: Cluster, shai: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for verb, paused in (("pause", True), ("resume", False)):
        assert shai("rollout", verb, "p").returncode == 0
        found = read(devcluster, "Pipeline", NAMESPACE, "p") or {}
        assert found["spec"]["rollout"]["paused"] is paused


def test_errors_name_the_thing(shai: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    absent = shai("rollout", "pause", "absent")
    assert (absent.returncode, '"absent" not found' in absent.stderr) == (1, True), absent
    none = shai("rollout", "status")
    assert (none.returncode, "takes one PIPELINE" in none.stderr) == (2, True), none
    wrong = shai("top", "--output=xml")
    assert (wrong.returncode, "expected text or json" in wrong.stderr) == (2, True), wrong
    for arguments, text in (
        (["logs"], "takes one RUN or PIPELINE/TASK"),
        (["logs", "p/once", "--region=de"], "--principal, which is missing"),
        (["audit", "p", "--since=yesterday"], "expected a duration"),
        (["audit", "p", "--kind=nonsense"], "expected decision, denial"),
        (["explain", "p"], "give --conduit"),
    ):
        found = shai(*arguments)
        assert (found.returncode, text in found.stderr) == (2, True), found
    never = shai("rollout", "undo", "open", "--to-revision=9")
    assert (never.returncode, "has no revision 9" in never.stderr) == (1, True), never


def test_top_and_doctor(devcluster: Cluster, shai: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    member = {"name": "plugin-pool-0", "ordinal": 0, "ready": "True", "reason": "Ready", "sessions": 7}
    says(devcluster, "jailpools", "plugin-pool", ("Ready", "True", "AllReady", ""), members=[member])
    says(devcluster, "pipelines", "p", ("Ready", "False", "RolledBack", "denials rose"), members=1)
    says(devcluster, "taskruns", "again", ("Succeeded", "Unknown", "Running", "it runs"))
    shown = shai("top")
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [f"{NAMESPACE}/p", "shai", "plugin-pool", "False", "RolledBack", "1"] in lines, shown
    assert ["TaskRun", f"{NAMESPACE}/again", "p", "Running"] in lines
    assert ["plugin-pool-0", "plugin-pool", "True", "Ready", "7"] in lines
    found = shai("doctor")
    assert (found.returncode, f"pipeline/{NAMESPACE}/p" in found.stdout) == (1, True), found
    assert "Ready=RolledBack  denials rose" in found.stdout
    findings = {one["object"]: one["reason"] for one in json.loads(shai("doctor", "-o", "json").stdout)["findings"]}
    assert findings[f"policy/{NAMESPACE}/open"] == "NotSeen"
    assert findings["admission"] == "NotChecked", "no operator is there"
    assert f"taskrun/{NAMESPACE}/again" not in findings


def test_undo_sets_the_text_of_an_earlier_revision(
    devcluster: Cluster, shai: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert shai("rollout", "undo", "open").returncode == 0
    found = read(devcluster, "Policy", NAMESPACE, "open") or {}
    assert found["spec"]["text"] == "policy open { read :- true. }"


def test_version_and_completion(shai: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert "version" in json.loads(shai("version", "--output=json").stdout)
    assert "bash completion" in shai("completion", "bash").stdout
