# SPDX-License-Identifier: BSD-2-Clause
"""Objects over time: immutable fields, statuses, columns and scaling."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from crds import kinds
from crds.tests.objects import ABSENT, BHYVE, RESOURCES, REVISION, Change, create, good, path

if TYPE_CHECKING:
    from collections.abc import Callable

    from testing.cluster import Cluster

MERGE = "application/merge-patch+json"
LOCAL: tuple[Change, ...] = (("provider", "local"), ("hosts", ABSENT))
NOW = "2026-03-01T12:00:00Z"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW}


@pytest.fixture
def made(devcluster: Cluster, namespace: str) -> Callable[[str], str]:
    """Return a function that creates a valid object of a kind and returns its path; names are unique."""

    def make(kind: str) -> str:
        name = "" if RESOURCES[kind].namespaced else namespace
        obj = good(kind, name, *(LOCAL if kind == "JailPool" else ()))
        answer = create(devcluster, obj, namespace)
        assert answer.status_code == 201, answer.json()
        return path(kind, namespace, obj["metadata"]["name"])

    return make


def merge(cluster: Cluster, url: str, body: dict[str, Any]) -> Any:
    return cluster.request("PATCH", url, body, content_type=MERGE)


IMMUTABLE: list[tuple[str, dict[str, Any], str]] = [
    ("PolicyRevision", {"text": "policy p { read :- false. }"}, "a revision is what the policy once was"),
    ("PolicyRevision", {"revision": 2}, "a revision is what the policy once was"),
    ("AnalysisRun", {"scope": "Active"}, "cannot change: make another run"),
    ("AnalysisRun", {"full": True}, "cannot change: make another run"),
    ("TaskRun", {"task": "other"}, "cannot change, apart from cancel"),
    ("MemberReading", {"user": "olga"}, "cannot change: make another reading"),
    ("MemberReading", {"publicKey": "b3RoZXI="}, "cannot change: make another reading"),
    ("TaskRun", {"member": "pool-1"}, "cannot change, apart from cancel"),
    ("TaskRun", {"retries": {"limit": 9}}, "cannot change, apart from cancel"),
    ("TaskRun", {"timeoutSeconds": 9}, "cannot change, apart from cancel"),
    ("TaskRun", {"trigger": "BringUp"}, "cannot change, apart from cancel"),
    (
        "JailPool",
        {"provider": "linux", "hosts": [good("JailPool")["spec"]["hosts"][0]]},
        "cannot move between providers",
    ),
    ("JailPool", {"directory": "/srv"}, "members would lose their data"),
    ("JailPool", {"network": {"addresses": "127.0.12.0/24"}}, "members are known by their addresses"),
]


BHYVE_IMMUTABLE: list[tuple[dict[str, Any], str]] = [
    ({"jails": 5}, "jails cannot change"),
    ({"network": {"machines": "198.51.101.0/24", "gateway": None}}, "virtual machines are known by their addresses"),
    ({"network": {"gateway": "198.51.100.253"}}, "the hosts' bridge and the jails would keep the earlier one"),
    ({"network": {"gateway": None}}, "gateway cannot be added or removed"),
    ({"network": {"uplink": "igb0"}}, "uplink cannot be added or removed"),
    ({"network": {"subnet": "198.51.100.0/24"}}, "subnet cannot be added or removed"),
    ({"virtualMachine": {"storage": {"dataset": "tank/shai"}}}, "virtual machines would stay behind"),
    ({"virtualMachine": {"storage": {"dataset": None, "directory": "/vms"}}}, "virtual machines would stay behind"),
    ({"virtualMachine": {"diskGibibytes": 10}}, "a disk cannot shrink"),
    ({"provider": "linux", "virtualMachine": None}, "cannot move between providers"),
]


@pytest.mark.parametrize(("change", "message"), BHYVE_IMMUTABLE)
def test_virtual_machines_cannot_change(
    devcluster: Cluster, namespace: str, change: dict[str, Any], message: str
) -> None:
    made = create(devcluster, good("JailPool", namespace, *BHYVE), namespace)
    assert made.status_code == 201, made.json()
    url = path("JailPool", namespace, namespace)
    answer = merge(devcluster, url, {"spec": change})
    assert (answer.status_code, message in answer.json()["message"]) == (422, True), answer.json()
    grown = merge(
        devcluster,
        url,
        {"spec": {"jails": 4, "virtualMachine": {"image": "freebsd-15.0-amd64", "diskGibibytes": 30}}},
    )
    assert grown.status_code == 200, grown.json()


@pytest.mark.parametrize(("kind", "change", "message"), IMMUTABLE)
def test_cannot_change(
    devcluster: Cluster, made: Callable[[str], str], kind: str, change: dict[str, Any], message: str
) -> None:
    url = made(kind)
    answer = merge(devcluster, url, {"spec": change})
    assert (answer.status_code, message in answer.json()["message"]) == (422, True), answer.json()
    labelled = merge(devcluster, url, {"metadata": {"labels": {"a": "b"}}})
    assert labelled.status_code == 200, labelled.json()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("JailPool", {"replicas": 3, "image": "next"}),
        ("Policy", {"mode": "Audit"}),
        ("OfflineAnalysis", {"suspend": True}),
        ("TaskRun", {"cancel": True}),
    ],
)
def test_can_change(devcluster: Cluster, made: Callable[[str], str], kind: str, change: dict[str, Any]) -> None:
    answer = merge(devcluster, made(kind), {"spec": change})
    assert answer.status_code == 200, answer.json()


def test_a_cancelled_task_run_does_not_go_on(devcluster: Cluster, made: Callable[[str], str]) -> None:
    url = made("TaskRun")
    assert merge(devcluster, url, {"spec": {"cancel": True}}).status_code == 200
    answer = merge(devcluster, url, {"spec": {"cancel": False}})
    assert (answer.status_code, "does not go on" in answer.json()["message"]) == (422, True), answer.json()


def test_a_benchmark_can_change_until_it_begins(devcluster: Cluster, made: Callable[[str], str]) -> None:
    url = made("Benchmark")
    assert merge(devcluster, url, {"spec": {"rounds": 3}}).status_code == 200
    for reason in ("Pending", "Running"):
        status = {"conditions": [condition("Succeeded", "Unknown", reason)]}
        assert merge(devcluster, f"{url}/status", {"status": status}).status_code == 200
        answer = merge(devcluster, url, {"spec": {"rounds": 4 if reason == "Pending" else 5}})
        assert answer.status_code == (200 if reason == "Pending" else 422), answer.json()
    assert "the measurement has begun" in answer.json()["message"]
    assert merge(devcluster, url, {"metadata": {"labels": {"a": "b"}}}).status_code == 200


@pytest.mark.parametrize("kind", [kind.kind for kind in kinds.ALL if kind.status is not None])
def test_status_is_a_subresource(devcluster: Cluster, made: Callable[[str], str], kind: str) -> None:
    url = made(kind)
    status = {"observedGeneration": 1, "conditions": [condition("Ready", "True", "Accepted", "fine")]}
    ignored = merge(devcluster, url, {"status": status}).json()
    assert "status" not in ignored
    found = merge(devcluster, f"{url}/status", {"status": status, "spec": {"mode": "Audit"}}).json()
    assert found["status"] == status
    assert found["metadata"]["generation"] == 1, "a status does not change what is wanted"


def test_writers_of_a_status_keep_their_conditions_apart(devcluster: Cluster, made: Callable[[str], str]) -> None:
    """Server-side apply by two managers: neither removes the other's condition."""
    url = made("Pipeline")
    _, _, _, _, space, _, name = url.strip("/").split("/")
    for manager, kind in (("first", "Accepted"), ("second", "RolledOut"), ("first", "Accepted")):
        body = {
            "apiVersion": "shai.dev/v1alpha1",
            "kind": "Pipeline",
            "metadata": {"name": name, "namespace": space},
            "status": {"conditions": [condition(kind, "True", "Fine")]},
        }
        answer = devcluster.request(
            "PATCH",
            f"{url}/status",
            body,
            content_type="application/apply-patch+yaml",
            fieldManager=manager,
            force="true",
        )
        assert answer.status_code == 200, answer.json()
    assert [condition["type"] for condition in answer.json()["status"]["conditions"]] == ["Accepted", "RolledOut"]


UNTIMED = {"type": "Ready", "status": "True", "reason": "A", "message": ""}
BAD_STATUS: list[tuple[str, dict[str, Any]]] = [
    (
        "conditions[1]: Duplicate value",
        {"conditions": [condition("Ready", status, "A") for status in ("True", "False")]},
    ),
    ('conditions[0].status: Unsupported value: "Maybe"', {"conditions": [condition("Ready", "Maybe", "A")]}),
    ("conditions[0].reason in body should match", {"conditions": [condition("Ready", "True", "not a word")]}),
    ("conditions[0].lastTransitionTime: Required value", {"conditions": [UNTIMED]}),
    ("effect.opened: Too many: 21", {"effect": {"opened": [{"task": "t"}] * 21}}),
]


@pytest.mark.parametrize(("message", "status"), BAD_STATUS)
def test_a_bad_status_is_refused(
    devcluster: Cluster, made: Callable[[str], str], message: str, status: dict[str, Any]
) -> None:
    answer = merge(devcluster, f"{made('Pipeline')}/status", {"status": status})
    assert (answer.status_code, message in answer.json()["message"]) == (422, True), answer.json()


def test_kubectl_scales_a_pool(devcluster: Cluster, made: Callable[[str], str], namespace: str) -> None:
    url = made("JailPool")
    status = {"replicas": 2, "selector": f"shai.dev/pool={namespace}"}
    assert merge(devcluster, f"{url}/status", {"status": status}).status_code == 200
    devcluster.kubectl("scale", "jailpool", namespace, "--replicas=3")
    scale = devcluster.request("GET", f"{url}/scale").json()
    assert (scale["spec"]["replicas"], scale["status"]) == (3, status)
    refused = devcluster.try_kubectl("scale", "jailpool", namespace, "--replicas=300")
    assert refused.returncode != 0
    assert "less than or equal to 256" in refused.stderr


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.kind)
def test_kubectl_explains_every_field(devcluster: Cluster, kind: Any) -> None:
    listed = devcluster.kubectl("explain", kind.plural, "--api-version=shai.dev/v1alpha1", "--recursive")
    assert "spec" in listed
    text = devcluster.kubectl("explain", f"{kind.plural}.spec", "--api-version=shai.dev/v1alpha1")
    assert "<no description>" not in text
    assert kind.spec["description"] in " ".join(text.split())
    document = devcluster.request("GET", "/openapi/v3/apis/shai.dev/v1alpha1").json()
    schema = document["components"]["schemas"][f"dev.shai.v1alpha1.{kind.kind}"]
    assert list(_undescribed(schema, kind.kind)) == []


def _undescribed(schema: dict[str, Any], at: str) -> Any:
    if not schema.get("description") and not at.endswith("metadata"):
        yield at
    for name, field in schema.get("properties", {}).items():
        yield from _undescribed(field, f"{at}.{name}")
    if "items" in schema:
        yield from _undescribed(schema["items"], f"{at}[]")


COLUMNS: dict[str, tuple[dict[str, Any], str, str]] = {
    "Policy": (
        {
            "latestRevision": 4,
            "stableRevision": "p-1",
            "conditions": [condition("Ready", "True", "Stable", "all well")],
        },
        "NAME MODE READY REASON REVISION AGE",
        "good Enforce True Stable 4",
    ),
    "PolicyRevision": ({}, "NAME POLICY REVISION MODE AGE", f"{REVISION} p 1 Enforce"),
    "FactSource": (
        {"conditions": [condition("Ready", "False", "Invalid")]},
        "NAME READY REASON AGE",
        "good False Invalid",
    ),
    "Principal": (
        {"conditions": [condition("Ready", "True", "Accepted")]},
        "NAME REGION READY AGE",
        "NAMESPACE True",
    ),
    "Task": (
        {"usedByTotal": 2, "conditions": [condition("Ready", "True", "Accepted")]},
        "NAME RUN TAINT READY REASON USED-BY AGE",
        "good Always p True Accepted 2",
    ),
    "Pipeline": (
        {
            "members": 3,
            "conditions": [condition("Ready", "False", "RolledBack"), condition("Analyzed", "True", "Complete")],
        },
        "NAME MODE READY REASON MEMBERS ANALYZED AGE",
        "good shai False RolledBack 3 Complete",
    ),
    "JailPool": (
        {
            "readyReplicas": 1,
            "updatedReplicas": 2,
            "availableReplicas": 3,
            "conditions": [condition("Ready", "False", "HostUnreachable")],
        },
        "NAME DESIRED READY UPDATED AVAILABLE PROVIDER REASON AGE",
        "NAMESPACE 1 1 2 3 local HostUnreachable",
    ),
    "MemberReading": (
        {"member": "pool-1", "conditions": [condition("Succeeded", "True", "Complete")]},
        "NAME USER MEMBER REASON AGE",
        "good administrator pool-1 Complete",
    ),
    "TaskRun": (
        {
            "member": "pool-1",
            "exitCode": 3,
            "denials": 2,
            "conditions": [condition("Succeeded", "False", "Failed")],
        },
        "NAME PIPELINE TASK MEMBER REASON EXIT DENIALS AGE",
        "good p t pool-1 Failed 3 2",
    ),
    "OfflineAnalysis": (
        {"conditions": [condition("Ready", "True", "Scheduled")]},
        "NAME PIPELINE SCHEDULE REASON LAST SUCCEEDED AGE",
        "good p 0 3 * * * Scheduled",
    ),
    "AnalysisRun": (
        {
            "progress": {"phase": "classes", "done": 7, "total": 9},
            "expected": 12,
            "granted": 7,
            "refused": 5,
            "warningsTotal": 1,
            "conditions": [condition("Succeeded", "Unknown", "Running")],
        },
        "NAME PIPELINE REASON DONE TOTAL GRANTED REFUSED WARNINGS AGE",
        "good p Running 7 9 7 5 1",
    ),
    "Benchmark": (
        {
            "progress": {"done": 7, "total": 9},
            "summary": {"dynamic": "7.2\u00a0%", "shai": "4.7\u00a0%"},
            "conditions": [
                condition("Succeeded", "True", "Complete"),
                condition("WithinThresholds", "False", "Exceeded"),
            ],
        },
        "NAME PIPELINE REASON DONE TOTAL SHAI AGE",
        "good p Complete 7 9 4.7\u00a0%",
    ),
}


@pytest.mark.parametrize("kind", RESOURCES)
def test_kubectl_shows_columns(devcluster: Cluster, made: Callable[[str], str], namespace: str, kind: str) -> None:
    assert kind in COLUMNS, f"add {kind} to COLUMNS: a status, and what kubectl prints for it"
    status, heading, row = COLUMNS[kind]
    url = made(kind)
    if status:
        assert merge(devcluster, f"{url}/status", {"status": status}).status_code == 200
    name = url.rpartition("/")[2]
    shown = devcluster.kubectl("get", RESOURCES[kind].short, name, "-n", namespace).splitlines()
    assert shown[0].split() == heading.split()
    assert shown[1].split(" ")[0] == name
    assert [cell for cell in shown[1].split(" ") if cell][:-1] == row.replace("NAMESPACE", namespace).split(" ")
    wide = devcluster.kubectl("get", RESOURCES[kind].short, name, "-n", namespace, "-o", "wide").splitlines()[0].split()
    assert set(wide) >= set(heading.split())


def test_objects_can_be_selected_by_fields(devcluster: Cluster, namespace: str) -> None:
    for name, pool in (("one", "left"), ("two", "right")):
        assert create(devcluster, good("Pipeline", name, ("pool", pool)), namespace).status_code == 201
    found = devcluster.kubectl("get", "pipelines", "-n", namespace, "--field-selector=spec.pool=right", "-o", "name")
    assert found.split() == ["pipeline.shai.dev/two"]


def test_the_category_lists_every_kind(devcluster: Cluster) -> None:
    listed = json.loads(devcluster.kubectl("get", "--raw", "/apis/shai.dev/v1alpha1"))
    kinds_listed = {entry["kind"]: entry for entry in listed["resources"] if "/" not in entry["name"]}
    assert set(kinds_listed) == set(RESOURCES)
    assert all(entry["categories"] == ["shai"] for entry in kinds_listed.values())
