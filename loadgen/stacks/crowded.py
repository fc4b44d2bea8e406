# SPDX-License-Identifier: BSD-2-Clause
"""Pipelines that hold many live sessions: Sys-E's front end alone, with as few policies as sessions need.

There is no search engine: its pipes and channels would limit the sessions of a pipeline to 32. Each user may read one
document, because its owner says that they are friends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.datasets import crowd
from loadgen.datasets.population import Person
from loadgen.stacks import manifests
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRONT_END = "worker"
SESSIONS = 4096
"""The most that a pipeline can have."""

_OWNER = "owner"
_REGION = "us"
_API_VERSION = "shai.dev/v1alpha1"
_IDLE_SECONDS = "86400"  # how long the front end keeps an idle session

_POLICIES = {
    "shared": """policy shared(owner) {
        read       :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
        declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
    }""",
    "worker": """policy worker(user) {
        read       :- sKeyIs(user).
        declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
    }""",
}


@dataclass(frozen=True)
class Pipeline:
    """One pipeline, and the users who have sessions of it."""

    name: str
    address: tuple[str, int]
    people: Sequence[Person]


def plan(sessions: int, host: str) -> list[Pipeline]:
    """Return the pipelines for a number of sessions, each of a user of its own."""
    names = [f"user{number:05}" for number in range(sessions)]
    people = [Person(name, crowd.seed(name), _REGION) for name in names]
    starts = range(0, sessions, SESSIONS)
    ports: set[int] = set()
    while len(ports) < len(starts):
        ports.add(free_port(host))
    return [
        Pipeline(f"crowd-{number}", (host, port), people[start : start + SESSIONS])
        for number, (start, port) in enumerate(zip(starts, ports, strict=True))
    ]


def write_data(directory: Path, pipelines: Sequence[Pipeline]) -> None:
    """Write the documents and the facts."""
    everybody = [one.name for pipeline in pipelines for one in pipeline.people]
    facts = [
        {"conduit": "population", "says": "key", "tuples": [[name, crowd.public_key(name)] for name in everybody]},
        {"conduit": f"friends/{_OWNER}", "says": "friend", "tuples": [[name] for name in everybody]},
    ]
    for pipeline in pipelines:
        document = directory / "corpus" / pipeline.name / "1.txt"
        document.parent.mkdir(parents=True)
        document.write_text(f"title: a document\nowner: {_OWNER}\nvisibility: friends\n\nA document.\n")
        expected = [[one.name] for one in pipeline.people]
        facts.append({"conduit": f"users/{pipeline.name}", "says": "expected", "tuples": expected})
    path = directory / "facts" / "crowd.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(fact) + "\n" for fact in facts))


def friendship(user: Person) -> dict[str, Any]:
    """Return the fact on which a user's only access rests, as the monitor's API takes it."""
    return {"conduit": f"friends/{_OWNER}", "says": "friend", "tuple": [user.name]}


def bundle(example: Sequence[dict[str, Any]], pipelines: Sequence[Pipeline]) -> list[dict[str, Any]]:
    """Return the manifests. ``example`` has the front end's task."""
    front_end = manifests.find_task(example, FRONT_END)["spec"]
    task = {
        "command": [*front_end["command"], "--idle-timeout", _IDLE_SECONDS],
        "run": "Always",
        "runtimeName": front_end["runtimeName"],
        "parameters": ["user"],
        "taint": {"name": "worker", "arguments": {"user": "{user}"}},
        "reads": ["documents"],
        "writes": ["web"],
    }
    return [
        *(_object("Policy", name, {"text": text}) for name, text in _POLICIES.items()),
        _object("FactSource", "crowd", {"file": {"path": "/facts/crowd.jsonl"}}),
        _object("Task", FRONT_END, task),
        *(_object("Pipeline", pipeline.name, _pipeline(pipeline)) for pipeline in pipelines),
    ]


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    expected = {"conduit": f"users/{pipeline.name}", "says": "expected", "parameters": ["user"]}
    documents = {"path": f"/corpus/{pipeline.name}/**", "policy": {"name": "shared", "arguments": {"owner": _OWNER}}}
    listen = f"{pipeline.address[0]}:{pipeline.address[1]}"
    web = {"listen": listen, "task": FRONT_END, "sessions": len(pipeline.people)}
    return {
        "mode": "shai",
        "revocation": "immediate",
        "tasks": [FRONT_END],
        "expect": [{"task": FRONT_END, "from": expected}],
        "conduits": [
            {"name": "documents", "kind": "file", "ingress": True, "paths": [documents]},
            {"name": "web", "kind": "connection", "egress": True, **web},
        ],
    }


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
