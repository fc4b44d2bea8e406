# SPDX-License-Identifier: BSD-2-Clause
"""Policies and their revisions.

Each content that a policy has ever had, as far as its history reaches, is a PolicyRevision: an
immutable copy that rollouts refer to and can go back to.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions
from shai_operator.reconcile.actions import WARNING, Create, Delete, Emit, Plan, SetStatus
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
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from shai_operator.reconcile.objects import Inventory, Object

WRITER = "shai-operator"
HASH_DIGITS = 10
"""Of a revision's hash in its name."""

_NAME_LIMIT = 63 - 1 - HASH_DIGITS
_DEFAULT_HISTORY = 10
_DEFAULT_MODE = "Enforce"


def mode(policy: Object) -> str:
    """Return a policy's (or a revision's) mode: Audit, Warn or Enforce."""
    return str(spec(policy).get("mode") or _DEFAULT_MODE)


def content_hash(policy: Object) -> str:
    """Return the SHA-256 of what a revision holds, in lower-case hexadecimal."""
    text = f"{mode(policy)}\n{spec(policy).get('text', '')}"
    return hashlib.sha256(text.encode()).hexdigest()


def revision_name(policy: Object) -> str:
    """Return the name of the PolicyRevision with a policy's present content."""
    return f"{name(policy)[:_NAME_LIMIT]}-{content_hash(policy)[:HASH_DIGITS]}"


def effective_revision(policy: Object, inventory: Inventory) -> Object | None:
    """Return the PolicyRevision that a policy is to be at; None when it has none that may be used.

    That is the one with its present content, unless it has been rejected or is not there (because
    the text is invalid, or not yet checked): then the stable one, else the newest there is.
    """
    space, rejected = namespace(policy), str(status(policy).get("rejectedRevision") or "")
    for candidate in (revision_name(policy), str(status(policy).get("stableRevision") or "")):
        if candidate and candidate != rejected:
            found = inventory.find("PolicyRevision", space, candidate)
            if found is not None:
                return found
    own = [one for one in inventory.all("PolicyRevision", space) if spec(one).get("policy") == name(policy)]
    left = [one for one in own if name(one) != rejected]
    return max(left, key=lambda one: int(spec(one)["revision"]), default=None)


def is_held(policy: Object) -> bool:
    """Whether a policy's present content has been rejected by a rollout."""
    return str(status(policy).get("rejectedRevision") or "") == revision_name(policy)


def reconcile(
    policy: Object,
    revisions: Sequence[Object],
    *,
    problem: str | None,
    parameters: Sequence[str],
    used: bool,
    now: datetime,
) -> Plan:
    """Keep a policy's revisions and its own part of the status.

    ``revisions`` are those that it owns; ``problem`` is what is wrong with it (empty: nothing;
    None: not yet known); ``used`` says whether a pipeline names it.
    """
    plan = Plan()
    if deleting(policy):
        return plan  # its revisions go with it
    accepted = _accepted(problem)
    latest = max((spec(one)["revision"] for one in revisions), default=0)
    if problem == "":
        latest = _keep_history(plan, policy, revisions, latest)
    if problem:
        plan.add(Emit(policy, WARNING, "Invalid", problem))
    plan.add(
        SetStatus(
            policy,
            WRITER,
            {
                "observedGeneration": generation(policy),
                "latestRevision": latest,
                "parameters": list(parameters),
                "conditions": conditions.render(policy, [accepted, _ready(policy, accepted, used=used)], now),
            },
        )
    )
    return plan


def _accepted(problem: str | None) -> Condition:
    if problem is None:
        return Condition("Accepted", UNKNOWN, "Checking", "the policy is being checked")
    if problem:
        return Condition("Accepted", FALSE, "Invalid", f"{problem}. What was in force before stays in force")
    return Condition("Accepted", TRUE, "Accepted", "the policy's text is valid")


def _ready(policy: Object, accepted: Condition, *, used: bool) -> Condition:
    if accepted.status != TRUE:
        return Condition("Ready", accepted.status, accepted.reason, accepted.message)
    if not used:
        return Condition("Ready", TRUE, "Unused", "no pipeline names this policy")
    rollout = conditions.find(policy, "RolledOut")
    if rollout is None:
        return Condition("Ready", UNKNOWN, "Pending", "its pool has not looked at it yet")
    if rollout["status"] == TRUE:
        return Condition("Ready", TRUE, "Stable", rollout["message"])
    # While a rollout goes on, the stable revision is what holds everywhere else.
    holds = bool(status(policy).get("stableRevision")) and rollout["reason"] != "RolledBack"
    return Condition("Ready", TRUE if holds else FALSE, rollout["reason"], rollout["message"])


def _keep_history(plan: Plan, policy: Object, revisions: Sequence[Object], latest: int) -> int:
    """Add the revision of the present content and drop the oldest; return the highest number."""
    present = revision_name(policy)
    if present not in {name(one) for one in revisions}:
        latest += 1
        plan.add(Create(_revision(policy, present, latest)))
    known = status(policy)
    kept = {present, *(known.get(field) for field in ("stableRevision", "candidateRevision", "rejectedRevision"))}
    spare = sorted((one for one in revisions if name(one) not in kept), key=lambda one: int(spec(one)["revision"]))
    limit = int(spec(policy).get("revisionHistoryLimit", _DEFAULT_HISTORY))
    for one in spare[: max(len(spare) - limit, 0)]:
        plan.add(Delete(reference(one), uid(one)))
    return latest


def _revision(policy: Object, revision: str, number: int) -> Mapping[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyRevision",
        "metadata": {
            "name": revision,
            "namespace": namespace(policy),
            "ownerReferences": [owner_reference(policy)],
        },
        "spec": {
            "policy": name(policy),
            "revision": number,
            "hash": content_hash(policy),
            "mode": mode(policy),
            "text": spec(policy)["text"],
        },
    }
