# SPDX-License-Identifier: BSD-2-Clause
"""The TaskRuns that the operator makes for a pipeline, and those of them that are kept."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions, task_run_members
from shai_operator.reconcile.actions import Delete, Plan
from shai_operator.reconcile.objects import (
    API_VERSION,
    BRING_UP,
    created,
    deleting,
    name,
    namespace,
    owner_reference,
    reference,
    spec,
    status,
    uid,
)

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Inventory, Object

_SUCCESSES_KEPT, _FAILURES_KEPT = 3, 1
_PREFIX_LIMIT = 63 - 1 - 8
_INHERITED = ("retries", "timeoutSeconds", "ttlSecondsAfterFinished")


def unfinished(inventory: Inventory, space: str, pipeline: str, task: str, member: str) -> Object | None:
    """Return the run that was made because a member needs a task; None: one has to be made.

    One by hand would have a member wait for its retries, and fail with its time-out.
    """
    for run in inventory.runs(space, pipeline, task):
        on = spec(run).get("member") or status(run).get("member")
        needed = spec(run).get("trigger") == BRING_UP
        if needed and on == member and not task_run_members.finished(run) and not deleting(run):
            return run
    return None


def made(pipeline: Object, task: str, member: str, suffix: str) -> dict[str, Any]:
    """Return a run that a member needs; ``suffix`` distinguishes its name, 8 characters at most.

    The name does not follow from the content: whoever may make TaskRuns cannot take it first.
    """
    prefix = f"{name(pipeline)}-{task}"[:_PREFIX_LIMIT].rstrip("-")
    settings = spec(pipeline).get("taskRuns") or {}
    return {
        "apiVersion": API_VERSION,
        "kind": "TaskRun",
        "metadata": {
            "name": f"{prefix}-{suffix}",
            "namespace": namespace(pipeline),
            "ownerReferences": [owner_reference(pipeline)],
        },
        "spec": {
            "pipeline": name(pipeline),
            "task": task,
            "member": member,
            "trigger": BRING_UP,
            **{field: settings[field] for field in _INHERITED if field in settings},
        },
    }


def history(pipeline: Object, inventory: Inventory) -> Plan:
    """Delete the oldest finished runs that the operator made, beyond the limits for each task on each member."""
    plan = Plan()
    if deleting(pipeline):
        return plan
    settings = spec(pipeline).get("taskRuns") or {}
    limits = {
        True: int(settings.get("successfulRunsHistoryLimit", _SUCCESSES_KEPT)),
        False: int(settings.get("failedRunsHistoryLimit", _FAILURES_KEPT)),
    }
    kept: dict[tuple[str, str, bool], list[Object]] = defaultdict(list)
    for run in inventory.all("TaskRun", namespace(pipeline)):
        wanted = spec(run)
        own = wanted.get("pipeline") == name(pipeline) and wanted.get("trigger") == BRING_UP
        if own and task_run_members.finished(run) and not deleting(run):
            good = conditions.holds(run, task_run_members.SUCCEEDED)
            kept[str(wanted["task"]), str(wanted.get("member", "")), good].append(run)
    for (*_, good), found in kept.items():
        found.sort(key=lambda run: (created(run), name(run)))
        for run in found[: max(len(found) - limits[good], 0)]:
            plan.add(Delete(reference(run), uid(run)))
    return plan
