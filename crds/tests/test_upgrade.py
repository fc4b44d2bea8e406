# SPDX-License-Identifier: BSD-2-Clause
"""Definitions are replaced while objects are stored: no data are lost, and no object becomes unusable.

The definitions are copied into a group of their own, so that other tests keep theirs.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from crds.tests.objects import RESOURCES, SPECS, good
from testing.cluster import ROOT, await_established, path_of
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster

GROUP = "upgrade.example"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def present(kind: str) -> dict[str, Any]:
    """Return the present definition of a kind, in the other group and with its own names."""
    resource = RESOURCES[kind]
    made: dict[str, Any] = yaml.safe_load((ROOT / "crds" / "bases" / resource.file).read_text())
    made["metadata"]["name"] = f"{resource.plural}.{GROUP}"
    made["spec"]["group"] = GROUP
    del made["spec"]["names"]["shortNames"], made["spec"]["names"]["categories"]
    return made


def older(kind: str, *without: str) -> dict[str, Any]:
    """Return an older definition: without some fields of spec, without rules, patterns, and defaults."""
    made = copy.deepcopy(present(kind))
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    made["spec"]["versions"][0].pop("selectableFields", None)
    for field in without:
        del schema["properties"]["spec"]["properties"][field]
    _loosen(schema)
    return made


def _loosen(schema: dict[str, Any]) -> None:
    for key in ("x-kubernetes-validations", "pattern", "default", "minLength", "maxLength", "maxItems", "maximum"):
        schema.pop(key, None)
    for field in schema.get("properties", {}).values():
        _loosen(field)
    for beneath in ("items", "additionalProperties"):
        if beneath in schema:
            _loosen(schema[beneath])


@pytest.fixture
def install(devcluster: Cluster) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that applies a definition; at the end all definitions are removed."""
    applied: set[str] = set()

    def apply(definition: dict[str, Any]) -> None:
        name = definition["metadata"]["name"]
        applied.add(name)
        devcluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(definition))
        await_established(devcluster, name)

    yield apply
    devcluster.kubectl("delete", "crd", *applied, "--wait")
    until(
        lambda: f"apis/{GROUP}/v1alpha1" not in devcluster.request("GET", "/openapi/v3").json()["paths"],
        f"the group {GROUP} is gone",
        60,
    )


def served(cluster: Cluster, kind: str, definition: dict[str, Any]) -> bool:
    """Whether the API server uses this definition: its handlers get it after it is stored."""
    document = cluster.request("GET", f"/openapi/v3/apis/{GROUP}/v1alpha1")
    schemas = document.json()["components"]["schemas"] if document.status_code == 200 else {}
    wanted = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    name = f"example.upgrade.v1alpha1.{kind}"
    return name in schemas and set(schemas[name]["properties"]["spec"]["properties"]) == set(wanted)


def wait_for(cluster: Cluster, kind: str, definition: dict[str, Any]) -> None:
    until(lambda: served(cluster, kind, definition), f"the definition of {kind} takes effect", 60)


CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "Policy": (("mode", "rollout", "revisionHistoryLimit"), {"mode": "Enforce"}, {"mode": "Audit"}),
    "Pipeline": (("pool", "rollout"), {"pool": "default"}, {"pool": "other"}),
    "Benchmark": (("concurrentUsers", "deadlineSeconds"), {"concurrentUsers": 24}, {"rounds": 2}),
}
"""By kind: fields that it did not have once, their defaults, and a change to make."""


@pytest.mark.parametrize("kind", CASES)
def test_stored_objects_live_on(
    devcluster: Cluster, namespace: str, install: Callable[[dict[str, Any]], None], kind: str
) -> None:
    new_fields, defaults, edit = CASES[kind]
    before, after = older(kind, *new_fields), present(kind)
    install(before)
    wait_for(devcluster, kind, before)
    obj = good(kind) | {"apiVersion": f"{GROUP}/v1alpha1"}
    url = path_of(obj["apiVersion"], RESOURCES[kind].plural, namespace)
    for name in ("old", "odd.name"):
        obj["metadata"] = {"name": name}
        created = devcluster.request("POST", url, obj)
        assert created.status_code == 201, created.json()
    stored = created.json()["spec"]

    install(after)
    wait_for(devcluster, kind, after)

    def complete() -> dict[str, Any] | None:
        spec: dict[str, Any] = devcluster.request("GET", f"{url}/old").json()["spec"]
        return spec if defaults.items() <= spec.items() else None

    # The handlers learn of the definition at another time than those who read its schema.
    found = until(complete, "what is new has its default")
    assert stored.items() <= found.items(), "what was stored is read as it was"

    edited = devcluster.request("PATCH", f"{url}/old", {"spec": edit}, content_type=MERGE)
    assert (edited.status_code, edited.json()["spec"]) == (200, found | edit)
    # An object whose name is no longer allowed can still be read, finished and deleted.
    status = {"observedGeneration": 1}
    odd = devcluster.request("PATCH", f"{url}/odd.name/status", {"status": status}, content_type=MERGE)
    assert odd.json()["status"] == status
    assert devcluster.request("DELETE", f"{url}/odd.name").status_code == 200


def test_a_task_that_still_lists_the_paths_of_its_runtime_lives_on(
    devcluster: Cluster, namespace: str, install: Callable[[dict[str, Any]], None]
) -> None:
    """Everybody can write what else it has, statuses among it, and mend it, also with server-side apply."""
    before, after = older("Task", "runtimeName"), present("Task")
    install(before)
    wait_for(devcluster, "Task", before)
    obj = good("Task", "", ("runtime", ["/lib"])) | {"apiVersion": f"{GROUP}/v1alpha1"}
    url = path_of(obj["apiVersion"], "tasks", namespace)
    assert devcluster.request("POST", url, obj).status_code == 201
    install(after)
    wait_for(devcluster, "Task", after)
    url = f"{url}/good"

    def refused() -> bool:
        worse = devcluster.request("PATCH", url, {"spec": {"runtime": ["/"]}}, content_type=MERGE, dryRun="All")
        return worse.status_code == 422 and "write spec.runtimeName" in worse.json()["message"]

    until(refused, "other paths are refused")
    edited = devcluster.request("PATCH", url, {"spec": {"run": "Once"}}, content_type=MERGE)
    assert (edited.status_code, edited.json()["spec"]["runtime"]) == (200, ["/lib"])

    def applied(place: str, **fields: Any) -> dict[str, Any]:
        body = {"apiVersion": obj["apiVersion"], "kind": "Task", "metadata": {"name": "good"}, **fields}
        answer = devcluster.request("PATCH", place, body, content_type=APPLY, fieldManager="tests", force="true")
        assert answer.status_code == 200, answer.json()
        found: dict[str, Any] = answer.json()
        return found

    assert applied(f"{url}/status", status={"observedGeneration": 2})["status"] == {"observedGeneration": 2}
    named = applied(url, spec=SPECS["Task"] | {"runtimeName": "java"})
    assert named["spec"]["runtimeName"] == "java"
    mended = devcluster.request("PATCH", url, {"spec": {"runtime": None}}, content_type=MERGE)
    assert (mended.status_code, "runtime" in mended.json()["spec"]) == (200, False)


def test_a_value_that_was_allowed_once_stays_until_it_is_changed(
    devcluster: Cluster, namespace: str, install: Callable[[dict[str, Any]], None]
) -> None:
    before, after = older("OfflineAnalysis", "onChange"), present("OfflineAnalysis")
    install(before)
    wait_for(devcluster, "OfflineAnalysis", before)
    obj = good("OfflineAnalysis", "", ("schedule", "@daily")) | {"apiVersion": f"{GROUP}/v1alpha1"}
    url = path_of(obj["apiVersion"], "offlineanalyses", namespace)
    assert devcluster.request("POST", url, obj).status_code == 201

    install(after)
    wait_for(devcluster, "OfflineAnalysis", after)
    url = f"{url}/good"
    paused = devcluster.request("PATCH", url, {"spec": {"suspend": True}}, content_type=MERGE)
    assert (paused.status_code, paused.json()["spec"]["schedule"]) == (200, "@daily")

    def refused() -> bool:
        change = {"spec": {"schedule": "@hourly"}}
        worse = devcluster.request("PATCH", url, change, content_type=MERGE, dryRun="All")
        return worse.status_code == 422 and "not a schedule" in worse.json()["message"]

    until(refused, "what was not stored before has to keep the rule")
    better = devcluster.request("PATCH", url, {"spec": {"schedule": "0 3 * * *"}}, content_type=MERGE)
    assert better.status_code == 200
