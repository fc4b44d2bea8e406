# SPDX-License-Identifier: BSD-2-Clause
"""A valid object of every kind, and ways to change it."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

from crds import kinds
from crds.resource import GROUP, VERSION
from testing.cluster import path_of

if TYPE_CHECKING:
    import httpx2

    from testing.cluster import Cluster

RESOURCES = {kind.kind: kind for kind in kinds.ALL}
TEXT = "policy p { read :- true. }"
HASH = hashlib.sha256(f"Enforce\n{TEXT}".encode()).hexdigest()
REVISION = f"p-{HASH[:32]}"

SPECS: dict[str, dict[str, Any]] = {
    "Policy": {"text": TEXT},
    "PolicyRevision": {"policy": "p", "revision": 1, "hash": HASH, "text": TEXT, "mode": "Enforce"},
    "FactSource": {"file": {"path": "/facts.jsonl"}},
    "Principal": {"publicKey": "0f" * 32},
    "Task": {"command": ["/bin/true"], "taint": {"name": "p"}},
    "Pipeline": {
        "tasks": ["reader", "worker"],
        "keyValue": {"socket": "/run/redis"},
        "expect": [{"task": "worker", "from": {"conduit": "c", "says": "s", "parameters": ["user"]}}],
        "conduits": [
            {"name": "files", "kind": "file", "paths": [{"path": "/a/{owner}/**", "policy": {"name": "p"}}]},
            {
                "name": "pairs",
                "kind": "tuple",
                "access": {"read": ["GET"]},
                "paths": [{"path": "k:{a}", "policy": {"name": "p"}}],
            },
            {"name": "pipe", "kind": "pipe", "from": "reader", "to": "worker", "policy": {"name": "p"}, "slots": 2},
            {"name": "channel", "kind": "channel", "from": "worker", "to": "reader", "policy": {"name": "p"}},
            {"name": "web", "kind": "connection", "listen": "127.0.0.1:8640", "task": "worker", "egress": True},
        ],
    },
    "JailPool": {
        "provider": "linux",
        "hosts": [
            {
                "name": "first",
                "address": "192.0.2.1",
                "privateKeySecret": {"namespace": "shai-system", "name": "login"},
                "hostKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
            }
        ],
    },
    "OfflineAnalysis": {"pipeline": "p", "schedule": "0 3 * * *"},
    "AnalysisRun": {"pipeline": "p"},
    "TaskRun": {"pipeline": "p", "task": "t"},
    "Benchmark": {"pipeline": "p"},
    "MemberReading": {
        "user": "administrator",
        "publicKey": "bm9ib2R5IGhhcyB0aGUgcHJpdmF0ZSBrZXkK",
        "pipeline": "p",
        "log": {"task": "t"},
    },
}

BHYVE: tuple[tuple[str, Any], ...] = (
    ("provider", "bhyve"),
    ("virtualMachine", {"image": "freebsd-14.3-amd64", "storage": {"dataset": "zroot/shai"}}),
    ("network", {"addresses": "198.51.100.0/25", "machines": "198.51.100.128/25", "gateway": "198.51.100.254"}),
)
"""Changes that make a pool of jails in virtual machines."""

Change = tuple[str, Any]
"""A path such as ``hosts.0.port`` in spec, or ``metadata.name``, and its new value."""

ABSENT = object()
"""Removes a field."""


def good(kind: str, name: str = "", *changes: Change) -> dict[str, Any]:
    """Return a valid object, with changes."""
    default = REVISION if kind == "PolicyRevision" else "good"
    made: dict[str, Any] = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name or default},
        "spec": copy.deepcopy(SPECS[kind]),
    }
    for place, value in changes:
        whole = place if place.startswith(("metadata.", "status.")) else f"spec.{place}"
        _put(made, whole, value if value is ABSENT else copy.deepcopy(value))
    return made


def _put(made: Any, place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for step in parents:
        made = made[int(step)] if isinstance(made, list) else made.setdefault(step, {})
    if value is ABSENT:
        del made[last]
    elif isinstance(made, list):
        made[int(last) : int(last) + 1] = [value]
    else:
        made[last] = value


def path(kind: str, namespace: str, name: str = "") -> str:
    """Return the URL path of a kind's objects, or of the object ``name``."""
    resource = RESOURCES[kind]
    return path_of(f"{GROUP}/{VERSION}", resource.plural, namespace if resource.namespaced else "", name)


def create(cluster: Cluster, obj: dict[str, Any], namespace: str, **parameters: str) -> httpx2.Response:
    """Create an object; a field that the schema does not have is an error."""
    parameters = {"fieldValidation": "Strict", **parameters}
    return cluster.request("POST", path(obj["kind"], namespace), obj, **parameters)


def try_create(cluster: Cluster, obj: dict[str, Any], namespace: str) -> httpx2.Response:
    """Try to create an object without storing it."""
    return create(cluster, obj, namespace, dryRun="All")
