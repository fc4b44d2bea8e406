# SPDX-License-Identifier: BSD-2-Clause
"""Readings of what members keep for administrators: which member is asked, and what for.

A reading is for the pipelines of its own namespace, and a member belongs to one namespace. So a member is asked only
if it belongs to the reading's namespace now, and an answer is passed on only if it still does. The API server has
checked that who creates the object may, and is the user that it names. What the member answers is sealed: nothing here
can read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions, references, shares, tenancy
from shai_operator.reconcile.actions import Delete, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition, timestamp
from shai_operator.reconcile.objects import created, deleting, generation, name, namespace, reference, spec, status, uid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from shai_operator.reconcile.objects import Inventory, Object, Reference

SUCCEEDED = "Succeeded"
WRITER = "shai-operator"
KEPT_SECONDS = 60.0
"""How long an answer waits for its reader."""
MOST = 16
"""Readings of a namespace that are answered, or whose answers nobody has fetched yet: each may have half a MiB."""
_LOOK_AGAIN_SECONDS = 1.0
_MEMBERS_NAMED = 8


@dataclass(frozen=True)
class Ask:
    """Ask a member's monitor; ``request`` is the message of its API."""

    member: str
    request: Mapping[str, Any]


@dataclass(frozen=True)
class Answered:
    """A member has answered; ``sealed`` is for the reader."""

    member: str
    sealed: str


@dataclass(frozen=True)
class Failed:
    """A member has not answered. The message names no host and no path."""

    member: str
    reason: str
    message: str


@dataclass
class Decision:
    """The status to write, and the request to a member: what is requested already is not requested again."""

    plan: Plan = field(default_factory=Plan)
    request: Ask | None = None


@dataclass(frozen=True)
class _Target:
    """What a reading is about: its pipeline, for a log also the task, and the member that it names."""

    pipeline: str
    task: str = ""
    member: str = ""
    own: tuple[str, ...] = ()
    """The members of the pipeline's pool that belong to the reading's namespace."""


def pool(reading: Object, inventory: Inventory) -> str:
    """Return the name of the pool whose members are asked; empty: there is none."""
    found = _pipeline(reading, inventory)
    return "" if isinstance(found, Condition) else references.pool(found[0])


def reconcile(
    reading: Object,
    silent: Mapping[str, str] | None,
    known: Answered | Failed | None,
    inventory: Inventory,
    now: datetime,
    *,
    asked: Collection[Reference] = (),
) -> Decision:
    """Decide the next step of a reading.

    ``silent`` says of each member of the pool that cannot be asked why; None: the members are not known yet. ``known``
    is what a member has answered; None: none was asked, or has not answered yet. ``asked`` are the readings for which
    members were asked.
    """
    decision = Decision()
    completed = status(reading).get("completionTime")
    if completed:
        left = (datetime.fromisoformat(completed) + timedelta(seconds=KEPT_SECONDS) - now).total_seconds()
        decision.plan.add(Delete(reference(reading), uid(reading)) if left <= 0 else Requeue(left))
    elif not deleting(reading):
        target = _target(reading, known.member if known else "", inventory)
        target = target if known else _crowded(reading, inventory, asked) or target
        chosen = target if isinstance(target, Condition) or known else _choose(reading, target, silent)
        if isinstance(chosen, Ask):
            decision.request = chosen
        else:
            _conclude(decision.plan, reading, chosen if isinstance(chosen, Condition) else known, now)
    return decision


def _conclude(plan: Plan, reading: Object, found: Condition | Answered | Failed | None, now: datetime) -> None:
    match found:
        case Answered():
            done = Condition(SUCCEEDED, TRUE, "Complete", f"member {found.member} has answered")
            _write(plan, reading, done, now, {"member": found.member, "sealed": found.sealed})
        case Failed():
            _write(plan, reading, Condition(SUCCEEDED, FALSE, found.reason, found.message), now)
        case Condition():
            _write(plan, reading, found, now)
            if found.status == UNKNOWN:
                plan.add(Requeue(_LOOK_AGAIN_SECONDS))


def _target(reading: Object, asked: str, inventory: Inventory) -> _Target | Condition:
    """Return what a reading is about and who may be asked, or why nobody may.

    ``asked`` was asked already, and must still be one of those; empty: nobody was.
    """
    found = _pipeline(reading, inventory)
    if isinstance(found, Condition):
        return found
    pipeline, target = found
    refusal = tenancy.refusal(pipeline, inventory)
    if refusal is not None:
        return Condition(SUCCEEDED, FALSE, refusal.reason, refusal.message)
    owner = inventory.find("JailPool", "", references.pool(pipeline))
    own = tuple(str(row["name"]) for row in shares.rows(owner, namespace(reading), inventory)) if owner else ()
    wanted = asked or str(spec(reading).get("member") or "") or target.member
    if own and (not wanted or wanted in own):
        return replace(target, member=wanted, own=own)
    has = ", ".join(own[:_MEMBERS_NAMED]) or "none yet"
    message = f"the pool of Pipeline {name(pipeline)} has no {wanted or 'member'} for this namespace; it has: {has}"
    return Condition(SUCCEEDED, FALSE, "NoSuchMember", message)


def _crowded(reading: Object, inventory: Inventory, asked: Collection[Reference]) -> Condition | None:
    """Refuse a reading when too many others of its namespace take memory of the operator, or are before it."""

    def counts(other: Object) -> bool:
        if status(other).get("completionTime"):
            return bool(status(other).get("sealed"))  # also while it is being deleted, which may take any time
        earlier = (created(other), name(other)) < (created(reading), name(reading))
        return earlier or reference(other) in asked

    if reference(reading) in asked:
        return None
    others = (other for other in inventory.all("MemberReading", namespace(reading)) if name(other) != name(reading))
    before = list(filter(counts, others))
    if len(before) < MOST:
        return None
    message = f"{MOST} readings of namespace {namespace(reading)} are being answered, or wait to be fetched; try again"
    return Condition(SUCCEEDED, FALSE, "TooMany", message)


def _choose(reading: Object, target: _Target, silent: Mapping[str, str] | None) -> Ask | Condition:
    """Return what to ask which member, or why none is asked."""
    if silent is None:
        return Condition(SUCCEEDED, UNKNOWN, "Pending", "the operator is looking at the members")
    member = target.member or next((one for one in target.own if one not in silent), target.own[0])
    if member in silent:
        return Condition(SUCCEEDED, FALSE, "Unreachable", f"member {member} cannot be asked: {silent[member]}")
    return Ask(member, _request(reading, target))


def _pipeline(reading: Object, inventory: Inventory) -> tuple[Object, _Target] | Condition:
    target = _named(reading, inventory)
    if isinstance(target, Condition):
        return target
    found = inventory.find("Pipeline", namespace(reading), target.pipeline)
    return (found, target) if found is not None else _missing(reading, "Pipeline", target.pipeline)


def _named(reading: Object, inventory: Inventory) -> _Target | Condition:
    """Return what the spec of a reading names."""
    log = spec(reading).get("log") or {}
    if not log.get("taskRun"):
        return _Target(str(spec(reading)["pipeline"]), str(log.get("task") or ""))
    run = inventory.find("TaskRun", namespace(reading), str(log["taskRun"]))
    if run is None:
        return _missing(reading, "TaskRun", str(log["taskRun"]))
    member = str(status(run).get("member") or "")
    if not member:
        message = f"TaskRun {name(run)} has not started on any member yet, so it has no log"
        return Condition(SUCCEEDED, FALSE, "NotFound", message)
    return _Target(str(spec(run)["pipeline"]), str(spec(run)["task"]), member)


def _missing(reading: Object, kind: str, called: str) -> Condition:
    return Condition(SUCCEEDED, FALSE, "NotFound", f"namespace {namespace(reading)} has no {kind} {called}")


def _request(reading: Object, target: _Target) -> dict[str, Any]:
    """Return the message to the monitor, which has ``internal/reading`` as its description."""
    asked: dict[str, Any] = {"reader": spec(reading)["user"], "recipient": spec(reading)["publicKey"]}
    if "log" in spec(reading):
        log = {key: value for key, value in spec(reading)["log"].items() if key != "taskRun"}
        return asked | {"log": {**log, "pipeline": target.pipeline, "task": target.task}}
    if "explain" in spec(reading):
        return asked | {"explain": {**spec(reading)["explain"], "pipeline": target.pipeline}}
    return asked | {"audit": dict(spec(reading).get("audit") or {})}


def _write(
    plan: Plan, reading: Object, condition: Condition, now: datetime, more: Mapping[str, Any] | None = None
) -> None:
    values: dict[str, Any] = {
        **(more or {}),
        "observedGeneration": generation(reading),
        "conditions": conditions.render(reading, [condition], now),
    }
    if condition.status != UNKNOWN:
        values["completionTime"] = timestamp(now)
    plan.add(SetStatus(reading, WRITER, values))
