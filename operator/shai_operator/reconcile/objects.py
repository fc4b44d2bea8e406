# SPDX-License-Identifier: BSD-2-Clause
"""Kubernetes objects as the pure layer sees them: plain mappings, addressed by reference.

An object is the JSON of the API server, not copied and never altered.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

GROUP = "shai.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
FINALIZER = f"{GROUP}/release"
FORCE_DELETE = f"{GROUP}/force-delete"
"""Annotation: when the object is deleted, give up on hosts that cannot be reached."""

BRING_UP = "BringUp"
"""The trigger of TaskRuns that the operator makes because a member needs them before it serves."""

Object = Mapping[str, Any]
_T = TypeVar("_T")

PLURALS = {
    "Policy": "policies",
    "PolicyRevision": "policyrevisions",
    "FactSource": "factsources",
    "Principal": "principals",
    "Task": "tasks",
    "TaskRun": "taskruns",
    "Pipeline": "pipelines",
    "JailPool": "jailpools",
    "OfflineAnalysis": "offlineanalyses",
    "AnalysisRun": "analysisruns",
    "Benchmark": "benchmarks",
    "MemberReading": "memberreadings",
}
"""The plural, as in URLs, of every kind of the group."""

WATCHED = {**PLURALS, "Namespace": "namespaces"}
"""The same of every kind that is watched."""

CLUSTER_SCOPED = frozenset({"Principal", "JailPool", "Namespace"})


@dataclass(frozen=True, order=True)
class Reference:
    """Names one object. ``namespace`` is empty for kinds of the whole cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the usual notation: ``Policy default/friends``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def reference(obj: Object) -> Reference:
    """Return the reference of an object; KeyError when it has no kind or name."""
    metadata = obj["metadata"]
    return Reference(obj["kind"], metadata.get("namespace", ""), metadata["name"])


def name(obj: Object) -> str:
    """Return ``metadata.name``."""
    return str(obj["metadata"]["name"])


def namespace(obj: Object) -> str:
    """Return ``metadata.namespace``, empty for kinds of the whole cluster."""
    return str(obj["metadata"].get("namespace", ""))


def uid(obj: Object) -> str:
    """Return ``metadata.uid``, which distinguishes objects that have the same name one after the other."""
    return str(obj["metadata"].get("uid", ""))


def generation(obj: Object) -> int:
    """Return ``metadata.generation``, which counts the changes of the spec from 1."""
    return int(obj["metadata"].get("generation", 1))


def created(obj: Object) -> str:
    """Return ``metadata.creationTimestamp``: RFC 3339, sorts as text."""
    return str(obj["metadata"].get("creationTimestamp", ""))


def spec(obj: Object) -> Mapping[str, Any]:
    """Return the spec; empty when there is none."""
    return obj.get("spec") or {}


def status(obj: Object) -> Mapping[str, Any]:
    """Return the status; empty when none has been written."""
    return obj.get("status") or {}


def deleting(obj: Object) -> bool:
    """Whether the object is being deleted and waits for its finalizers."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def finalizers(obj: Object) -> tuple[str, ...]:
    """Return ``metadata.finalizers``."""
    return tuple(obj["metadata"].get("finalizers") or ())


def force_delete(obj: Object) -> bool:
    """Whether a person has asked to give up on hosts that cannot be reached."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(FORCE_DELETE) == "true"


def owner_reference(owner: Object) -> dict[str, Any]:
    """Make the entry that makes ``owner`` the controlling owner of another object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _version(obj: Object) -> int:
    """Return ``metadata.resourceVersion``, which increases with each change of any object."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def _nothing(_: Object) -> bool:
    return False


@dataclass
class Inventory:
    """All objects of the watched kinds as they were last seen. Not thread-safe.

    ``genuine`` says whether the operator made a PolicyRevision; other revisions are ignored. Without it, all are
    ignored.
    """

    genuine: Callable[[Object], bool] = _nothing
    _objects: dict[str, dict[str, dict[str, Object]]] = field(default_factory=lambda: {kind: {} for kind in WATCHED})
    """By kind, namespace and name."""
    _forged: dict[tuple[str, str], Object] = field(default_factory=dict)
    _revisions: dict[tuple[str, str], dict[str, Object]] = field(default_factory=dict)
    """Genuine PolicyRevisions by namespace and policy, and name: a policy has few of them, a namespace has many."""
    _runs: dict[tuple[str, str, str], list[Object]] = field(default_factory=dict)
    """TaskRuns by namespace, pipeline and task, in the order of `_turn`: a person may make thousands."""
    _derived: dict[Reference, dict[Callable[[Object], Any], Any]] = field(default_factory=dict)

    def put(self, obj: Object) -> None:
        """Store an object, unless a later version of it is stored already."""
        ref = reference(obj)
        known = self.get(ref)
        if ref.kind == "PolicyRevision":
            known = known or self._forged.get((ref.namespace, ref.name))
        if known is not None and uid(known) == uid(obj) and _version(known) > _version(obj):
            return
        self.remove(ref)
        if ref.kind == "PolicyRevision":
            if not self.genuine(obj):
                self._forged[ref.namespace, ref.name] = obj
                return
            self._revisions.setdefault(_of_policy(obj), {})[ref.name] = obj
        if ref.kind == "TaskRun":
            bisect.insort(self._runs.setdefault(_of_task(obj), []), obj, key=_turn)
        self._objects[ref.kind].setdefault(ref.namespace, {})[ref.name] = obj

    def remove(self, ref: Reference) -> None:
        """Remove an object, if it is stored."""
        gone = self._objects[ref.kind].get(ref.namespace, {}).pop(ref.name, None)
        self._derived.pop(ref, None)
        if ref.kind == "PolicyRevision":
            self._forged.pop((ref.namespace, ref.name), None)
            if gone is not None:
                self._revisions[_of_policy(gone)].pop(ref.name)
        if ref.kind == "TaskRun" and gone is not None:
            del self._runs[_of_task(gone)][self.turn(gone)]

    def forged(self, namespace: str | None = None) -> list[Object]:
        """List the PolicyRevisions that the operator did not make, by name. All other methods ignore them."""
        return [self._forged[key] for key in sorted(self._forged) if namespace is None or key[0] == namespace]

    def revisions(self, policy: Object) -> list[Object]:
        """List the PolicyRevisions of a policy by name."""
        known = self._revisions.get((namespace(policy), name(policy)), {})
        return [known[called] for called in sorted(known)]

    def runs(self, namespace: str, pipeline: str, task: str) -> Sequence[Object]:
        """List the TaskRuns of a task in the order of their turns: those that members need, then the oldest."""
        return self._runs.get((namespace, pipeline, task), ())

    def turn(self, run: Object) -> int:
        """Return how many TaskRuns of the same task come before a run."""
        return bisect.bisect_left(self._runs.get(_of_task(run), ()), _turn(run), key=_turn)

    def get(self, ref: Reference) -> Object | None:
        """Return an object, or None."""
        return self._objects[ref.kind].get(ref.namespace, {}).get(ref.name)

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object by its names, or None; ``namespace`` is ignored for kinds of the whole cluster."""
        return self._objects[kind].get("" if kind in CLUSTER_SCOPED else namespace, {}).get(name)

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """List the objects of a kind by name, of one namespace or (None) of all."""
        known = self._objects[kind]
        spaces = sorted(known) if namespace is None else [namespace]
        return [held[called] for held in (known.get(space, {}) for space in spaces) for called in sorted(held)]

    def derived(self, obj: Object, compute: Callable[[Object], _T]) -> _T:
        """Return ``compute(obj)``, which depends on the object alone. Of the version that is stored it is kept."""
        ref = reference(obj)
        if self.get(ref) is not obj:
            return compute(obj)
        kept = self._derived.setdefault(ref, {})
        if compute not in kept:
            kept[compute] = compute(obj)
        found: _T = kept[compute]
        return found


def _of_policy(revision: Object) -> tuple[str, str]:
    return namespace(revision), str(spec(revision).get("policy"))


def _of_task(run: Object) -> tuple[str, str, str]:
    return namespace(run), str(spec(run).get("pipeline")), str(spec(run).get("task"))


def _turn(run: Object) -> tuple[bool, str, str]:
    return spec(run).get("trigger") != BRING_UP, created(run), name(run)
