# SPDX-License-Identifier: BSD-2-Clause
"""Whose turn it is: on which member a TaskRun starts, and which of the runs of a task goes first there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from shai_operator.reconcile import attempts, conditions, tenancy
from shai_operator.reconcile.conditions import UNKNOWN, Condition
from shai_operator.reconcile.objects import deleting, name, namespace, spec, status, uid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shai_operator.reconcile.objects import Inventory, Object

SUCCEEDED = "Succeeded"
_EXAMPLES = 3
_NEXT = 16
"""So many runs of a task are looked at when something has changed for them. A person may make thousands."""
_LOOK_AGAIN_SECONDS, _LONGEST_SECONDS = 5.0, 300.0


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


def next_of(inventory: Inventory, space: str, pipeline: str, task: str) -> Iterator[Object]:
    """Yield the unfinished runs of a task whose turn may come next: the first ones. The others look for themselves."""
    runs = inventory.runs(space, pipeline, task)
    yield from islice((run for run in runs if not finished(run)), _NEXT)


def look_again(run: Object, inventory: Inventory) -> float:
    """Return after how many seconds a run that waits looks for its turn: the longer, the more are before it."""
    return min(_LOOK_AGAIN_SECONDS * (1 + inventory.turn(run) // _NEXT), _LONGEST_SECONDS)


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
    before = True
    for other in inventory.runs(namespace(run), str(spec(run)["pipeline"]), str(spec(run)["task"])):
        if uid(other) == uid(run):
            before = False
        elif not finished(other):
            if attempts.active(other) is not None:
                if status(other).get("member") == chosen.name:
                    return name(other)
            elif before and not deleting(other) and _candidate(other, members) == chosen:
                return name(other)
    return ""
