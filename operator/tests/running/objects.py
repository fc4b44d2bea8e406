# SPDX-License-Identifier: BSD-2-Clause
"""Objects for tests of the running operator, and checks of their status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import API_VERSION, CLUSTER_SCOPED, PLURALS
from testing.cluster import path_of
from testing.waiting import until

if TYPE_CHECKING:
    from testing.cluster import Cluster

API = API_VERSION
RUNTIMES = [{"name": "system", "paths": ["/bin", "/lib", "/lib64", "/usr/lib", "/usr/bin"]}]
OPEN = "policy {name} {{\n  read   :- true.\n  update :- true.\n}}\n"


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def policy(name: str, text: str = "", **spec: Any) -> dict[str, Any]:
    return resource("Policy", name, text=text or OPEN.format(name=name.replace("-", "_")), **spec)


def task(name: str, taint: str, **spec: Any) -> dict[str, Any]:
    """A task that ends at once; pools give it its runtime with `RUNTIMES`."""
    usual = {"command": ["/bin/true"], "runtimeName": "system", "run": "Once"}
    return resource("Task", name, **{**usual, "taint": {"name": taint}, **spec})


def pipeline(name: str, tasks: list[str], path: str, policy_name: str, **spec: Any) -> dict[str, Any]:
    conduit = {
        "name": "files",
        "kind": "file",
        "directory": True,
        "ingress": True,
        "paths": [{"path": path, "policy": {"name": policy_name}}],
    }
    return resource("Pipeline", name, tasks=tasks, conduits=[conduit], **spec)


def serving(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    """A pool without members that serves a namespace."""
    usual = {
        "allowedNamespaces": {"names": [namespace]},
        "provider": "local",
        "replicas": 0,
        "runtimes": RUNTIMES,
    }
    return resource("JailPool", name, **{**usual, **spec})


def apply(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Apply objects as ``kubectl apply --server-side`` does, without the time that kubectl takes to start."""
    asked = {"fieldManager": "tests", "force": "true", "fieldValidation": "Strict"}
    for obj in objects:
        path = _path(obj["kind"], namespace, obj["metadata"]["name"])
        answer = cluster.request("PATCH", path, obj, content_type="application/apply-patch+yaml", **asked)
        assert answer.is_success, answer.text


def apply_with_kubectl(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Apply objects as ``kubectl apply`` does, which notes in an annotation what it has applied."""
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))


def read(cluster: Cluster, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
    answer = cluster.request("GET", _path(kind, namespace, name))
    if answer.status_code == 404:
        return None
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _path(kind: str, namespace: str, name: str) -> str:
    return path_of(API, PLURALS[kind], "" if kind in CLUSTER_SCOPED else namespace, name)


def share(found: dict[str, Any] | None, namespace: str) -> dict[str, Any]:
    """Return what the status of a JailPool has of a namespace; empty when it has nothing."""
    entries = ((found or {}).get("status") or {}).get("namespaces") or ()
    return next((entry for entry in entries if entry["name"] == namespace), {})


def condition(found: dict[str, Any] | None, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition, empty when there is none."""
    for entry in ((found or {}).get("status") or {}).get("conditions") or ():
        if entry["type"] == kind:
            return entry["status"], entry["reason"]
    return "", ""


def message(found: dict[str, Any] | None, kind: str) -> str:
    for condition in ((found or {}).get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return str(condition["message"])
    return ""


def await_condition(
    cluster: Cluster, kind: str, namespace: str, name: str, of: str, want: tuple[str, str], *, seconds: float = 30.0
) -> dict[str, Any]:
    """Wait until a condition has this status and reason; return the object."""
    last: dict[str, Any] | None = None

    def reached() -> dict[str, Any] | None:
        nonlocal last
        last = read(cluster, kind, namespace, name)
        return last if condition(last, of) == want else None

    try:
        found: dict[str, Any] = until(reached, f"{kind} {name}: {of} is {want}", seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}; its status is {json.dumps((last or {}).get('status'), indent=1)}") from None
    return found


def events(cluster: Cluster, namespace: str, name: str) -> list[dict[str, Any]]:
    """Return the events about an object."""
    answer = cluster.request("GET", path_of("v1", "events", namespace)).json()
    return [event for event in answer["items"] if event["involvedObject"]["name"] == name]
