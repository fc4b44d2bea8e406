# SPDX-License-Identifier: BSD-2-Clause
"""The objects that have to be reconciled when another object changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile import references, task_run_members
from shai_operator.reconcile.objects import (
    Reference,
    deleting,
    generation,
    name,
    namespace,
    reference,
    spec,
    status,
    uid,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shai_operator.reconcile.objects import Inventory, Object

DEFINITIONS = "Definitions"
"""Kind of the reference that stands for all definitions of a namespace, which are checked together."""

_KINDS = frozenset({"Policy", "Task", "FactSource", "Pipeline"})


def of(obj: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    """Yield the references that depend on an object that was created, changed (from ``before``) or deleted."""
    kind, space = obj["kind"], namespace(obj)
    if kind in {"AnalysisRun", "TaskRun"}:
        yield from _of_run(obj, space) if kind == "AnalysisRun" else _of_task_run(obj, before, inventory)
        return
    if kind in _KINDS and _redefined(before, obj):
        yield Reference(DEFINITIONS, "", space)
    match kind:
        case "Policy" | "Task" | "FactSource":
            yield from _pools(inventory, space)
            yield from _of_definition(obj, before, inventory)
        case "Principal":
            yield from map(reference, inventory.all("JailPool"))
        case "PolicyRevision":
            policy = Reference("Policy", space, str(spec(obj).get("policy", "")))
            yield policy
            yield from _users(policy, inventory)
            yield from _pools(inventory, space)
        case "Pipeline":
            yield from _of_pipeline(obj, before, inventory)
        case "JailPool":
            yield from _of_pool(obj, before, inventory)
        case "Namespace":
            yield from _of_namespace(obj, before, inventory)


def of_verdict(ref: Reference, inventory: Inventory) -> Iterator[Reference]:
    """Yield the references that depend on whether an object is valid."""
    yield ref
    if ref.kind in {"Task", "Policy"}:
        yield from _users(ref, inventory)
    yield from _pools(inventory, ref.namespace)


def _of_definition(obj: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    space = namespace(obj)
    match obj["kind"]:
        case "FactSource":  # a pool that does not allow it runs no pipeline of its namespace
            yield from map(reference, inventory.all("Pipeline", space))
        case "Policy":
            if before is not None and _differ("rejectedRevision", before, obj):
                yield Reference(DEFINITIONS, "", space)
            yield from _users(reference(obj), inventory)


def _of_pipeline(obj: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    space = namespace(obj)
    pools = {references.pool(version) for version in (obj, before) if version is not None} | {
        str(status(obj).get("pool", ""))
    }
    yield from (Reference("JailPool", "", pool) for pool in sorted(pools - {""}))
    if _redefined(before, obj):
        yield from (Reference("Task", space, task) for task in references.tasks(obj))
        yield from map(reference, inventory.all("FactSource", space))
    for kind in ("OfflineAnalysis", "AnalysisRun", "Benchmark"):
        for other in inventory.all(kind, space):
            if spec(other).get("pipeline") == name(obj):
                yield reference(other)
    yield from map(reference, _runs(obj, before, inventory))


def _runs(pipeline: Object, before: Object | None, inventory: Inventory) -> Iterator[Object]:
    """Yield the unfinished runs of a pipeline: all if it was redefined or deleted, otherwise those that come next."""
    space = namespace(pipeline)
    if not _redefined(before, pipeline):
        for task in references.tasks(pipeline):
            yield from task_run_members.next_of(inventory, space, name(pipeline), task)
        return
    for run in inventory.all("TaskRun", space):
        if spec(run).get("pipeline") == name(pipeline) and not task_run_members.finished(run):
            yield run


def _of_pool(obj: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    own = [pipeline for pipeline in inventory.all("Pipeline") if references.pool(pipeline) == name(obj)]
    yield from map(reference, own)
    # Which of two pipelines gets a path depends on what the pool allows, and on what is in force.
    changed = before is None or spec(before) != spec(obj)
    # Whether a source may be used depends on the pool's list, and on whom it serves.
    sources = before is None or changed or _differ("serves", before, obj)
    for space in sorted(set(map(namespace, own))):
        if changed or _in_force(before, space) != _in_force(obj, space):
            yield Reference(DEFINITIONS, "", space)
        if sources:
            yield from map(reference, inventory.all("FactSource", space))


def _in_force(pool: Object | None, space: str) -> list[tuple[str, str]]:
    entries = status(pool or {}).get("namespaces") or ()
    return [(entry["uid"], entry.get("stableRelease", "")) for entry in entries if entry["name"] == space]


def _of_namespace(obj: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    # A pool may select a namespace by its labels, and knows it by its UID.
    known = (uid(obj), obj["metadata"].get("labels"), deleting(obj))
    if before is None or known != (uid(before), before["metadata"].get("labels"), deleting(before)):
        yield from map(reference, inventory.all("JailPool"))
        for kind in ("Pipeline", "FactSource", "AnalysisRun", "Benchmark"):
            yield from map(reference, inventory.all(kind, name(obj)))


def _of_run(run: Object, space: str) -> Iterator[Reference]:
    if spec(run).get("offlineAnalysis"):
        yield Reference("OfflineAnalysis", space, str(spec(run)["offlineAnalysis"]))
    yield Reference("Pipeline", space, str(spec(run).get("pipeline", "")))


def _of_task_run(run: Object, before: Object | None, inventory: Inventory) -> Iterator[Reference]:
    """Yield its pipeline, which keeps only the last runs, and the runs whose turn may come with the change."""
    space, pipeline = namespace(run), str(spec(run).get("pipeline", ""))
    yield Reference("Pipeline", space, pipeline)
    is_new = before is None and inventory.get(reference(run)) is not None
    if not is_new:
        yield from map(reference, task_run_members.next_of(inventory, space, pipeline, str(spec(run).get("task", ""))))


def _redefined(before: Object | None, after: Object) -> bool:
    """Whether a spec was changed, perhaps back to what it was: what is known of the generation before is over."""
    return before is None or generation(before) != generation(after) or spec(before) != spec(after)


def _differ(field: str, before: Object, after: Object) -> bool:
    return bool(status(before).get(field) != status(after).get(field))


def _pools(inventory: Inventory, space: str) -> Iterator[Reference]:
    found = {references.pool(pipeline) for pipeline in inventory.all("Pipeline", space)}
    yield from (Reference("JailPool", "", pool) for pool in sorted(found))


def _users(ref: Reference, inventory: Inventory) -> Iterator[Reference]:
    for pipeline in inventory.all("Pipeline", ref.namespace):
        if ref.kind == "Task":
            named = ref.name in references.tasks(pipeline)
        else:
            named = references.names_policy(pipeline, ref.name, inventory)
        if named:
            yield reference(pipeline)
