# SPDX-License-Identifier: BSD-2-Clause
"""Tasks, fact sources, principals and pipelines: whether they can be used, and by whom.

If an object cannot be used, its status and the status of the pipelines that name it say why. The definitions that were
in force stay in force, and other pipelines are not affected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from shai_operator.reconcile import (
    addresses,
    choices,
    conditions,
    order,
    policies,
    references,
    shares,
    sources,
    tenancy,
    tenants,
)
from shai_operator.reconcile.actions import WARNING, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.objects import Reference, created, generation, name, namespace, reference, status, uid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from shai_operator.reconcile.objects import Inventory, Object

WRITER = "shai-operator"
PATIENCE_SECONDS = 3.0
"""How long an object has to be wrong before an event reports it."""
_CONFLICT = "PathConflict"
USERS_LISTED = 16
"""Names in a task's status.usedBy; the schema limits the list."""


@dataclass(frozen=True)
class Verdict:
    """The answer of the monitor's parser about an object."""

    problem: str = ""
    """What is wrong with it, in a sentence; empty: nothing."""
    overlaps: bool = False
    """The only problem is that an older pipeline claims the same conduits."""
    parameters: tuple[str, ...] = ()
    """The parameters of a valid policy."""
    composed: str = ""
    """The text of a valid policy that includes others of its namespace, with their clauses in place."""
    missing: bool = False
    """The only problem is that policies that it includes do not exist."""


def principal(obj: Object, now: datetime) -> Plan:
    """Return the status of a Principal, of which the schema has already checked everything."""
    return _plan(obj, [replace(_accepted(Verdict(), "Principal"), type="Ready")], {}, now)


def fact_source(obj: Object, verdict: Verdict | None, inventory: Inventory, now: datetime) -> Plan:
    """Return the status of a FactSource; ``verdict`` None: not yet checked."""
    accepted = _accepted(verdict, "FactSource")
    why = sources.source_refusal(obj, inventory) if accepted.status == TRUE else ""
    if why:
        accepted = Condition("Accepted", FALSE, sources.REASON, f"{why}. Until then the pool runs no pipeline here")
    return _plan(obj, [replace(accepted, type="Ready")], {}, now)


def task(obj: Object, verdict: Verdict | None, inventory: Inventory, now: datetime) -> Plan:
    """Return the status of a Task, with the pipelines that run it."""
    users = sorted(
        name(pipeline)
        for pipeline in inventory.all("Pipeline", namespace(obj))
        if name(obj) in references.tasks(pipeline)
    )
    accepted = _accepted(verdict, "Task")
    ready = Condition("Ready", accepted.status, accepted.reason, accepted.message)
    return _plan(obj, [ready], {"usedBy": users[:USERS_LISTED], "usedByTotal": len(users)}, now)


def pipeline(obj: Object, verdicts: Mapping[Reference, Verdict], inventory: Inventory, now: datetime) -> Plan:
    """Return the operator's part of a Pipeline's status: whether it can run, and whether it runs."""
    accepted = acceptance(obj, verdicts, inventory)
    ready = _ready(obj, accepted, inventory)
    return _plan(obj, [accepted, ready], {"graph": order.rows(_graph(obj, inventory))}, now)


def _graph(obj: Object, inventory: Inventory) -> order.Graph:
    """Return the order of a pipeline's tasks, as far as they exist."""
    found = {task: inventory.find("Task", namespace(obj), task) for task in references.tasks(obj)}
    return order.graph(obj, {task: known for task, known in found.items() if known is not None})


def acceptance(obj: Object, verdicts: Mapping[Reference, Verdict], inventory: Inventory) -> Condition:
    """Return a pipeline's condition Accepted: whether it can be part of its pool's definitions."""
    refusal = tenancy.refusal(obj, inventory) or _source(obj, inventory)
    if refusal is not None:
        return refusal
    if reference(obj) not in verdicts:
        return Condition("Accepted", UNKNOWN, "Checking", "the pipeline is being checked")
    valid = Condition("Accepted", TRUE, "Accepted", "the pipeline and all that it names are valid")
    broken = _broken(obj, verdicts, inventory)
    if broken is not None and broken.reason != _CONFLICT:
        return broken
    # Without the conflict it could not run either: that comes last.
    return (
        _unusable(obj, inventory)
        or _mode(obj, inventory)
        or _runtime(obj, inventory)
        or _address(obj, inventory)
        or _choices(obj, inventory)
        or broken
        or valid
    )


def precedence(
    pipelines: Iterable[Object], in_force: Collection[str], verdicts: Mapping[Reference, Verdict], inventory: Inventory
) -> list[Object]:
    """Order the pipelines of one namespace and pool: where two claim the same conduits, the first gets them.

    Pipelines in force (their names are in ``in_force``) come first, then the others, the oldest first. Pipelines that
    cannot run come last, so that they block no other pipeline.
    """

    def rank(pipeline: Object) -> tuple[bool, bool, str, str]:
        broken = _broken(pipeline, verdicts, inventory)
        return (
            name(pipeline) not in in_force,
            (broken is not None and broken.reason != _CONFLICT) or _not_allowed(pipeline, inventory),
            created(pipeline),
            uid(pipeline),
        )

    return sorted(pipelines, key=rank)


def refused(
    pool: str, space: str, verdicts: Mapping[Reference, Verdict], inventory: Inventory
) -> dict[Reference, Condition] | None:
    """Return the pipelines of a namespace and pool that are not accepted, and why.

    None while one of them is not checked yet.
    """
    found = {}
    for pipeline in inventory.all("Pipeline", space):
        if references.pool(pipeline) == pool:
            accepted = acceptance(pipeline, verdicts, inventory)
            if accepted.status == UNKNOWN:
                return None
            if accepted.status == FALSE:
                found[reference(pipeline)] = accepted
    return found


def _broken(obj: Object, verdicts: Mapping[Reference, Verdict], inventory: Inventory) -> Condition | None:
    """Say what a pipeline lacks, or what is wrong with it or with an object that it names."""
    missing = _missing(obj, inventory)
    if missing is not None:
        return missing
    for ref in _named(obj, inventory):
        verdict = verdicts.get(ref)
        if verdict is not None and verdict.problem:
            about = "" if ref.kind == "Pipeline" else f"{ref.kind} {ref.name}: "
            return Condition("Accepted", FALSE, _CONFLICT if verdict.overlaps else "Invalid", about + verdict.problem)
    return None


def _missing(obj: Object, inventory: Inventory) -> Condition | None:
    space = namespace(obj)
    for kind, named in (("Task", references.tasks(obj)), ("Policy", references.policies(obj, inventory))):
        absent = [missing for missing in named if inventory.find(kind, space, missing) is None]
        if absent:
            names = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")  # noqa: PLR2004
            message = f"there is no {kind} {names} in namespace {space}; apply it, or correct the pipeline"
            return Condition("Accepted", FALSE, f"{kind}Missing", message)
    return None


def _unusable(obj: Object, inventory: Inventory) -> Condition | None:
    """Say which policy of a pipeline has no usable revision."""
    space = namespace(obj)
    for policy_name in references.policies(obj, inventory):
        policy = inventory.find("Policy", space, policy_name)
        if policy is not None and policies.effective_revision(policy, inventory) is None:
            why = "was rolled back" if policies.is_held(policy) else "has no revision yet"
            message = f"Policy {policy_name} {why}, and there is no stable revision; correct its text"
            return Condition("Accepted", FALSE, "PolicyMissing", message)
    return None


def _mode(obj: Object, inventory: Inventory) -> Condition | None:
    """Say that the mode of a pipeline, or of the revision of a policy that it would use, is not allowed by its pool."""
    space, pool = namespace(obj), inventory.find("JailPool", "", references.pool(obj))
    if pool is None:
        return None
    used = [
        (policy_name, policies.effective_revision(policy, inventory))
        for policy_name in references.policies(obj, inventory)
        if (policy := inventory.find("Policy", space, policy_name)) is not None
    ]
    tried = [(policy_name, policies.mode(revision)) for policy_name, revision in used if revision is not None]
    why = tenancy.mode_refusal(pool, [references.mode(obj)], tried)
    return Condition("Accepted", FALSE, "ModeNotAllowed", why) if why else None


def _runtime(obj: Object, inventory: Inventory) -> Condition | None:
    """Say which runtime of a pipeline's task its pool does not give, or its members do not have yet."""
    pool = inventory.find("JailPool", "", references.pool(obj))
    if pool is None:
        return None
    tasks = list(references.existing_tasks(obj, inventory))
    why = tenancy.runtime_refusal(pool, tasks) or tenancy.runtime_delay(pool, tasks)
    return Condition("Accepted", FALSE, "RuntimeMissing", why) if why else None


def _address(obj: Object, inventory: Inventory) -> Condition | None:
    """Say that a pipeline listens at an address that does not belong to its pool."""
    pool, tenant = inventory.find("JailPool", "", references.pool(obj)), tenants.find(namespace(obj), inventory)
    why = "" if pool is None or tenant is None else addresses.refusal(pool, tenant, obj)
    return Condition("Accepted", FALSE, "AddressNotAllowed", why) if why else None


def _choices(obj: Object, inventory: Inventory) -> Condition | None:
    """Say that a pipeline permits choices, and its namespace has several members."""
    pool, tenant = inventory.find("JailPool", "", references.pool(obj)), tenants.find(namespace(obj), inventory)
    why = "" if pool is None or tenant is None else choices.refusal(pool, tenant, obj)
    return Condition("Accepted", FALSE, choices.REASON, why) if why else None


def _source(obj: Object, inventory: Inventory) -> Condition | None:
    """Say that a pipeline's pool does not allow its store, or a source of facts of its namespace."""
    pool = inventory.find("JailPool", "", references.pool(obj))
    why = "" if pool is None else sources.pipeline_refusal(pool, obj, inventory)
    return Condition("Accepted", FALSE, sources.REASON, why) if why else None


def _not_allowed(obj: Object, inventory: Inventory) -> bool:
    """Whether a pipeline's pool does not allow it, or one of its policies was rolled back and has no other revision.

    That the revision of a new text is still to be made does not count: it would cost the older pipeline its paths.
    """
    pool, tenant = inventory.find("JailPool", "", references.pool(obj)), tenants.find(namespace(obj), inventory)
    if pool is None or tenant is None:
        return False
    tried = []
    for policy_name in references.policies(obj, inventory):
        policy = inventory.find("Policy", namespace(obj), policy_name)
        used = policies.effective_revision(policy, inventory) if policy and policies.is_held(policy) else policy
        if used is not None:
            tried.append((policy_name, policies.mode(used)))
        elif policy is not None:
            return True
    return bool(
        tenancy.mode_refusal(pool, [references.mode(obj)], tried)
        or tenancy.runtime_refusal(pool, references.existing_tasks(obj, inventory))
        or addresses.refusal(pool, tenant, obj)
        or choices.refusal(pool, tenant, obj)
        or sources.pipeline_refusal(pool, obj, inventory)
    )


def _named(obj: Object, inventory: Inventory) -> list[Reference]:
    space = namespace(obj)
    return [
        *(Reference("Task", space, task) for task in references.tasks(obj)),
        *(Reference("Policy", space, policy) for policy in references.policies(obj, inventory)),
        Reference("Pipeline", space, name(obj)),
    ]


def _ready(obj: Object, accepted: Condition, inventory: Inventory) -> Condition:
    rollout = conditions.current(obj, "RolledOut")
    if accepted.status != TRUE:
        kept = status(obj).get("bundle") and accepted.reason not in {"NamespaceNotAllowed", sources.REASON}
        still = " The last valid definitions stay in force." if kept else ""
        return Condition("Ready", accepted.status, accepted.reason, accepted.message + "." + still)
    unserved = _unserved(obj, inventory)
    if unserved is not None and (rollout is None or rollout["status"] == TRUE):
        return unserved
    if rollout is None:
        return Condition("Ready", UNKNOWN, "Pending", "its pool has not looked at it yet")
    return Condition("Ready", rollout["status"], rollout["reason"], rollout["message"])


def _unserved(obj: Object, inventory: Inventory) -> Condition | None:
    """Say that not all members run a pipeline, whatever is in force; None: they do, or it is not known yet."""
    pool = inventory.find("JailPool", "", references.pool(obj)) or {}
    if not status(pool):
        return None
    serving = int(status(obj).get("members") or 0)
    wanted = int(status(obj).get("wantedMembers", -1))
    if wanted == 0 or not shares.rows(pool, namespace(obj), inventory):
        message = f"JailPool {references.pool(obj)} has no member for this namespace; its owner can raise spec.replicas"
        return Condition("Ready", FALSE, "NoMembers", message)
    if serving < wanted:
        serve = count(serving, "member", ("serves it", "serve it"), of=wanted)
        message = f"{serve}; the status of JailPool {references.pool(obj)} says more"
        return Condition("Ready", FALSE, "MembersNotReady", message)
    return None


def _accepted(verdict: Verdict | None, kind: str) -> Condition:
    if verdict is None:
        return Condition("Accepted", UNKNOWN, "Checking", f"the {kind} is being checked")
    if verdict.problem:
        return Condition("Accepted", FALSE, "Invalid", verdict.problem)
    return Condition("Accepted", TRUE, "Accepted", f"the {kind} is valid")


def _lasts(obj: Object, verdict: Condition, now: datetime) -> bool:
    """Whether an object has had this condition for `PATIENCE_SECONDS`."""
    known = conditions.find(obj, verdict.type)
    if known is None or (known["status"], known["reason"]) != (verdict.status, verdict.reason):
        return False
    return now - datetime.fromisoformat(known["lastTransitionTime"]) >= timedelta(seconds=PATIENCE_SECONDS)


def _plan(obj: Object, wanted: list[Condition], more: Mapping[str, object], now: datetime) -> Plan:
    plan = Plan()
    verdict = wanted[0]
    if conditions.unsaid(obj, verdict, now):
        plan.add(Requeue(conditions.UNSAID_SECONDS))
        return plan
    if verdict.status == FALSE:
        # Objects of one `kubectl apply` arrive one after the other: there is no event for an object that is missing for
        # a moment.
        if _lasts(obj, verdict, now):
            plan.add(Emit(obj, WARNING, verdict.reason, verdict.message))
        else:
            plan.add(Requeue(PATIENCE_SECONDS))
    plan.add(
        SetStatus(
            obj,
            WRITER,
            {
                "observedGeneration": generation(obj),
                "conditions": conditions.render(obj, wanted, now),
                **more,
            },
        )
    )
    return plan
