# SPDX-License-Identifier: BSD-2-Clause
"""Whose turn it is: on which member a TaskRun starts, and which of the runs of a task goes first there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.reconcile import attempts, conditions, tenancy
from shai_operator.reconcile.conditions import UNKNOWN, Condition
from shai_operator.reconcile.objects import created, deleting, name, namespace, spec, status, uid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.reconcile.objects import Inventory, Object

SUCCEEDED = "Succeeded"
BRING_UP = "BringUp"
_EXAMPLES = 3


@dataclass(frozen=True)
class Member:
    """A member of the pipeline's pool, in the order in which they are chosen."""

    name: str
    reason: str = ""
    """Why it cannot be asked to run the task; empty: it can."""
    monitor: str = ""
    """When its monitor started: identifies the process."""


def finished(run: Object) -> bool:
    """Whether a run has ended, successfully or not."""
    known = conditions.find(run, SUCCEEDED)
    return known is not None and known["status"] != UNKNOWN


def of_task(inventory: Inventory, space: str, pipeline: str, task: str) -> list[Object]:
    """List the runs of a task, in the order in which they take their turns."""
    listed = [
        run
        for run in inventory.all("TaskRun", space)
        if spec(run).get("pipeline") == pipeline and spec(run).get("task") == task
    ]
    return sorted(listed, key=lambda run: (spec(run).get("trigger") != BRING_UP, created(run), name(run)))


def choose(run: Object, members: Sequence[Member], inventory: Inventory) -> Member | Condition:
    """Return the member that runs the next attempt, or what the run waits for."""
    pipeline = inventory.find("Pipeline", namespace(run), spec(run)["pipeline"])
    if pipeline is None:
        where = f"Pipeline {spec(run)['pipeline']}, which is not in namespace {namespace(run)}; apply it"
        return Condition(SUCCEEDED, UNKNOWN, "Pending", f"the run waits for {where}")
    refusal = tenancy.refusal(pipeline, inventory)
    if refusal is not None:
        return Condition(SUCCEEDED, UNKNOWN, "Pending", f"the run waits: {refusal.message}")
    chosen = _candidate(run, members)
    if chosen is None or chosen.reason:
        return Condition(SUCCEEDED, UNKNOWN, "Pending", _waits_for(run, members, chosen))
    ahead = _ahead(run, members, chosen, inventory)
    if ahead:
        message = f"the run waits for its turn on {chosen.name}: TaskRun {ahead} is before it"
        return Condition(SUCCEEDED, UNKNOWN, "Queued", message)
    return chosen


def _candidate(run: Object, members: Sequence[Member]) -> Member | None:
    """Return the member on which a run is to start, whether it can be asked or not."""
    wanted = str(spec(run).get("member") or status(run).get("member") or "")
    named = next((member for member in members if member.name == wanted), None)
    if named is not None or spec(run).get("member"):
        return named
    return next((member for member in members if not member.reason), None)


def _waits_for(run: Object, members: Sequence[Member], chosen: Member | None) -> str:
    wanted = spec(run).get("member")
    if chosen is not None:
        return f"the run waits for {chosen.name}: {chosen.reason}"
    if wanted:
        others = ", ".join(member.name for member in members[:_EXAMPLES]) or "it has none"
        return f"the run waits for member {wanted}, which the pipeline's pool does not have; its members: {others}"
    why = "; ".join(f"{member.name}: {member.reason}" for member in members[:_EXAMPLES]) or "it has none"
    return f"the run waits for a member of the pipeline's pool to be ready ({why})"


def _ahead(run: Object, members: Sequence[Member], chosen: Member, inventory: Inventory) -> str:
    """Return the name of the run that goes before this one on a member; empty: it is this one's turn."""
    others = of_task(inventory, namespace(run), str(spec(run)["pipeline"]), str(spec(run)["task"]))
    before = True
    for other in others:
        if uid(other) == uid(run):
            before = False
        elif not finished(other):
            if attempts.active(other) is not None:
                if status(other).get("member") == chosen.name:
                    return name(other)
            elif before and not deleting(other) and _candidate(other, members) == chosen:
                return name(other)
    return ""
