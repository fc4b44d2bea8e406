# SPDX-License-Identifier: BSD-2-Clause
"""Policies and their revisions.

A PolicyRevision is an immutable copy of one content of a policy. There is one for each content within the policy's
history. Rollouts refer to revisions and can roll back to them.

A revision counts only if the operator made it. Otherwise a user who may write PolicyRevisions could bring a text into
force that the Policy does not contain, or that admission has not checked: by creating the revision for a future
content, or a revision to roll back to.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions
from shai_operator.reconcile.actions import WARNING, Create, Delete, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition
from shai_operator.reconcile.objects import (
    API_VERSION,
    deleting,
    generation,
    name,
    namespace,
    owner_reference,
    reference,
    spec,
    status,
    uid,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.seals import Seal

WRITER = "shai-operator"
NUMBERED = ("latestRevision",)
"""The field of a Policy's status that cannot be found out again once the newest revisions are deleted."""
HASH_DIGITS = 32
"""The number of digits of a revision's hash in its name: enough that nobody can find two texts with the same digits."""

_FORMER_HASH_DIGITS = 10
"""The number of digits in names that an earlier version of the operator gave. A rollout can still roll back to such
revisions."""
_NAME_LIMIT = 63 - 1 - HASH_DIGITS
_DEFAULT_HISTORY = 10
_DEFAULT_MODE = "Enforce"


def mode(policy: Object) -> str:
    """Return a policy's (or a revision's) mode: Audit, Warn or Enforce."""
    return str(spec(policy).get("mode") or _DEFAULT_MODE)


def content_hash(policy: Object) -> str:
    """Return the SHA-256 of a policy's (or a revision's) content, in lower-case hexadecimal.

    The content is mode and text: what a revision of its own is made for. The text of a policy that includes others of
    its namespace has their clauses in place. The monitor's parser makes it, and the status keeps its hash.
    """
    composed = status(policy).get("composed") or {}
    if composed.get("generation") == generation(policy):
        return str(composed["hash"])
    return _hash(policy, str(spec(policy).get("text", "")))


def _hash(policy: Object, text: str) -> str:
    return hashlib.sha256(f"{mode(policy)}\n{text}".encode()).hexdigest()


def _composed(policy: Object, text: str) -> Object:
    """Return a policy whose status says what its content is; ``text`` is empty if it includes no other policy."""
    known = {key: value for key, value in status(policy).items() if key != "composed"}
    if text:
        known["composed"] = {"generation": generation(policy), "hash": _hash(policy, text)}
    return {**policy, "status": known}


def revision_name(policy: Object) -> str:
    """Return the name of the PolicyRevision with a policy's present content."""
    return f"{name(policy)[:_NAME_LIMIT]}-{content_hash(policy)[:HASH_DIGITS]}"


def genuine(revision: Object, seal: Seal) -> bool:
    """Whether the operator made a PolicyRevision, and its name and hash match its content."""
    return named_by_content(revision) and seal.is_on(revision)


def named_by_content(revision: Object) -> bool:
    """Whether a PolicyRevision's name and hash match its content."""
    content = content_hash(revision)
    digits = name(revision).rpartition("-")[2]
    named = len(digits) in (HASH_DIGITS, _FORMER_HASH_DIGITS) and content.startswith(digits)
    return named and spec(revision).get("hash") == content


def effective_revision(policy: Object, inventory: Inventory) -> Object | None:
    """Return the PolicyRevision that a policy should use; None when it has no usable one.

    This is the revision with the policy's present content. If that one was rejected or does not exist (because the text
    is invalid or not yet checked), it is the stable revision. If the stable revision is missing, it is none: the
    release in force keeps its text. Otherwise a user who may delete PolicyRevisions could bring an older text into
    force.
    """
    space, rejected = namespace(policy), str(status(policy).get("rejectedRevision") or "")
    present = inventory.find("PolicyRevision", space, revision_name(policy))
    # A name contains only the first digits of a hash, so the whole content is compared.
    if present is not None and name(present) != rejected and content_hash(present) == content_hash(policy):
        return present
    stable = str(status(policy).get("stableRevision") or "")
    return None if stable in {rejected, revision_name(policy)} else inventory.find("PolicyRevision", space, stable)


def is_held(policy: Object) -> bool:
    """Whether a policy's present content has been rejected by a rollout."""
    return str(status(policy).get("rejectedRevision") or "") == revision_name(policy)


def reconcile(
    policy: Object,
    inventory: Inventory,
    *,
    problem: str | None,
    parameters: Sequence[str],
    composed: str,
    missing: bool,
    used: bool,
    seal: Seal,
    now: datetime,
) -> Plan:
    """Reconcile a policy's revisions and the operator's part of its status.

    ``problem`` is what is wrong with the policy (empty: nothing; None: not yet checked), ``missing`` says that it is
    only a policy that it includes. ``composed`` is its text with the clauses of others, if it includes any; ``used``
    says whether a pipeline names it.
    """
    plan = Plan()
    if deleting(policy):
        return plan  # its revisions are deleted with it
    accepted = _accepted(problem, missing=missing)
    if conditions.unsaid(policy, accepted, now):
        plan.add(Requeue(conditions.UNSAID_SECONDS))
        return plan
    revisions = inventory.revisions(policy)
    counted = int(status(policy).get("latestRevision") or 0)
    latest = max([counted, *(int(spec(revision)["revision"]) for revision in revisions)])
    forged = inventory.forged(namespace(policy))
    taken = any(name(other) == revision_name(policy) and deleting(other) for other in forged)
    if problem == "":
        policy = _composed(policy, composed)
        make = partial(revision, policy, seal=seal, composed=composed)
        latest = _keep_history(plan, policy, revisions, latest, None if taken else make)
    _put_forged_aside(plan, policy, forged, replace=problem == "")
    ready = _ready(policy, accepted, used=used, taken=taken)
    if problem:
        plan.add(Emit(policy, WARNING, accepted.reason, problem))
    values = {
        "observedGeneration": generation(policy),
        "latestRevision": latest,
        "parameters": list(parameters),
        "conditions": conditions.render(policy, [accepted, ready], now),
    }
    if "composed" in status(policy):
        values["composed"] = status(policy)["composed"]
    plan.add(SetStatus(policy, WRITER, values))
    return plan


def _accepted(problem: str | None, *, missing: bool) -> Condition:
    if problem is None:
        return Condition("Accepted", UNKNOWN, "Checking", "the policy is being checked")
    if problem:
        reason = "IncludeMissing" if missing else "Invalid"
        return Condition("Accepted", FALSE, reason, f"{problem}. What was in force before stays in force")
    return Condition("Accepted", TRUE, "Accepted", "the policy's text is valid")


def _ready(policy: Object, accepted: Condition, *, used: bool, taken: bool) -> Condition:
    if accepted.status != TRUE:
        return Condition("Ready", accepted.status, accepted.reason, accepted.message)
    if taken:
        message = f"{_blocked(policy)}. What was in force before stays in force"
        return Condition("Ready", FALSE, "RevisionBlocked", message)
    if not used:
        return Condition("Ready", TRUE, "Unused", "no pipeline names this policy")
    rollout = conditions.current(policy, "RolledOut")
    if rollout is None:
        return Condition("Ready", UNKNOWN, "Pending", "its pool has not looked at it yet")
    if rollout["status"] == TRUE:
        return Condition("Ready", TRUE, "Stable", rollout["message"])
    return Condition("Ready", rollout["status"], rollout["reason"], rollout["message"])


def _keep_history(
    plan: Plan, policy: Object, revisions: Sequence[Object], latest: int, make: Callable[[int], dict[str, Any]] | None
) -> int:
    """Add the revision with the present content and delete the oldest; return the highest number.

    ``make`` makes the revision with a number; without it nothing is added: another object still has the name.
    """
    present = revision_name(policy)
    if make is not None and present not in {name(revision) for revision in revisions}:
        latest += 1
        plan.add(Create(make(latest)))
    known = status(policy)
    kept = {present, *(known.get(field) for field in ("stableRevision", "candidateRevision", "rejectedRevision"))}
    spare = sorted(
        (revision for revision in revisions if name(revision) not in kept),
        key=lambda revision: int(spec(revision)["revision"]),
    )
    limit = int(spec(policy).get("revisionHistoryLimit", _DEFAULT_HISTORY))
    for old in spare[: max(len(spare) - limit, 0)]:
        plan.add(Delete(reference(old), uid(old)))
    return latest


def _put_forged_aside(plan: Plan, policy: Object, forged: Sequence[Object], *, replace: bool) -> None:
    """Delete a forged revision whose name the operator needs, and warn of the other forged ones."""
    present = revision_name(policy)
    for revision in forged:
        if name(revision) == present and deleting(revision):
            plan.add(Emit(policy, WARNING, "RevisionIgnored", _blocked(policy)))
        elif name(revision) == present and replace:
            plan.actions.insert(0, Delete(reference(revision), uid(revision)))
            message = f"PolicyRevision {present} was not made by this operator; it is replaced"
            plan.add(Emit(policy, WARNING, "RevisionReplaced", message))
        elif spec(revision).get("policy") == name(policy):
            message = f"PolicyRevision {name(revision)} was not made by this operator and does not count; delete it"
            plan.add(Emit(policy, WARNING, "RevisionIgnored", message))


def _blocked(policy: Object) -> str:
    return (
        f"PolicyRevision {revision_name(policy)} was not made by this operator, and its finalizers keep it from being "
        "replaced; remove them"
    )


def revision(policy: Object, number: int, seal: Seal, composed: str = "") -> dict[str, Any]:
    """Make the PolicyRevision of a policy's present content; ``composed`` is its text if it includes others."""
    return seal.put_on(
        {
            "apiVersion": API_VERSION,
            "kind": "PolicyRevision",
            "metadata": {
                "name": revision_name(policy),
                "namespace": namespace(policy),
                "ownerReferences": [owner_reference(policy)],
            },
            "spec": {
                "policy": name(policy),
                "revision": number,
                "hash": content_hash(policy),
                "mode": mode(policy),
                "text": composed or spec(policy)["text"],
            },
        }
    )
