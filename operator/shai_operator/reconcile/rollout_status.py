# SPDX-License-Identifier: BSD-2-Clause
"""The part of the status of pipelines and policies that reports the rollout.

The controllers of pipelines and policies write the rest of the status under another field manager, so that neither
changes the fields of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import conditions, policies, references, releases, tenancy
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Condition, find
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.objects import created, deleting, name, namespace, status, uid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.effects import Effect
    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.releases import Definitions
    from shai_operator.reconcile.rollout_state import Decision

WRITER = "shai-operator-rollout"
REVISIONS = ("stableRevision", "candidateRevision", "rejectedRevision")
"""The fields of a Policy's status that name revisions."""
_MOVES = "Progressing"
"""The reason while something that waits for nobody is not over."""


@dataclass(frozen=True)
class Outlook:
    """The decision for a share of a pool, for the statuses of its pipelines and policies."""

    pool: str
    decision: Decision
    stable: Release | None
    """The stable release after the decision."""
    candidate: Release | None
    """The candidate that is under way, or that this decision rejects."""
    members: int
    """The number of its members that serve."""
    wanted: int
    """The number of its members, with those that do not serve."""
    behind: int
    """The number of its members that have another release than the stable one in force, or had when they were seen
    last."""
    described: Mapping[str, Any]
    """The state of its rollout, as the pool's status has it."""
    hash: str = ""
    """The monitors' hash of the stable bundle; empty when no member has reported it yet."""
    effect: Effect | None = None


def pipeline(obj: Object, outlook: Outlook, inventory: Inventory, now: datetime) -> SetStatus:
    """Return a Pipeline's pool, members, effect, rollout and condition RolledOut."""
    decision = outlook.decision
    before = status(obj)
    written: dict[str, Any] = {
        "pool": outlook.pool,
        "members": outlook.members,
        "wantedMembers": outlook.wanted,
        "rollout": {
            key: outlook.described[key]
            for key in ("release", "step", "steps", "members", "since", "verdict", "message")
            if key in outlook.described
        },
        "conditions": conditions.render(obj, [_pipeline_condition(obj, outlook, inventory)], now),
    }
    bundle = outlook.hash or before.get("bundle")
    if bundle:
        written["bundle"] = bundle
    concerned = {decision.state.candidate, decision.rejected} - {""}
    if outlook.effect is not None and outlook.effect.after in concerned:
        written["effect"] = outlook.effect.of_pipeline(name(obj))
    elif concerned and before.get("effect"):
        written["effect"] = before["effect"]  # found before the operator was restarted
    return SetStatus(obj, WRITER, written)


def _pipeline_condition(obj: Object, outlook: Outlook, inventory: Inventory) -> Condition:
    """Return the condition RolledOut: True only if what the specs say *now* is in force on the pool's members."""
    condition = outlook.decision.condition
    if condition.status != TRUE:
        return condition
    if outlook.stable is None or ("Pipeline", name(obj)) not in outlook.stable.objects:
        return Condition("RolledOut", UNKNOWN, "Pending", "its pool has nothing of it in force")
    if not releases.holds(outlook.stable, obj, inventory):
        message = "its pool has it in force as it was before; what the specs say now waits to be rolled out"
        return Condition("RolledOut", FALSE, _MOVES, message)
    if outlook.behind:
        return Condition("RolledOut", FALSE, _MOVES, _lagging(outlook))
    return Condition("RolledOut", TRUE, condition.reason, count(outlook.members, "member", ("runs it", "run it")))


def _lagging(outlook: Outlook) -> str:
    return f"{count(outlook.behind, 'member', ('has', 'have'))} another release than the one that is rolled out"


def _homes(space: str, inventory: Inventory) -> dict[str, str]:
    """Return the pool that writes each policy's status: that of the oldest served pipeline with the policy."""
    found: dict[str, str] = {}
    kept = [pipeline for pipeline in inventory.all("Pipeline", space) if not deleting(pipeline)]
    served = [pipeline for pipeline in kept if tenancy.refusal(pipeline, inventory) is None]
    for pipeline in sorted(served, key=lambda pipeline: (created(pipeline), uid(pipeline))):
        for policy in references.policies(pipeline, inventory):
            found.setdefault(policy, references.pool(pipeline))
    return found


def rejections(outlook: Outlook, inventory: Inventory, now: datetime) -> Iterator[SetStatus]:
    """Yield the statuses that mark revisions as rejected. They are written before the pool forgets the candidate."""
    if outlook.candidate is None:
        return
    for policy_name in outlook.decision.reject:
        obj = inventory.find("Policy", outlook.candidate.namespace, policy_name)
        if obj is not None:
            yield policy(obj, outlook, now, rejected=outlook.candidate.revisions.get(policy_name, ""))


def policy(obj: Object, outlook: Outlook, now: datetime, *, rejected: str = "") -> SetStatus:
    """Return a Policy's revisions and its condition RolledOut; ``rejected`` is a revision that was rejected just now.

    A revision stays rejected for as long as the spec has its content.
    """
    policy_name, newest, before = name(obj), policies.revision_name(obj), status(obj)
    rejected = rejected or str(before.get("rejectedRevision") or "")
    stable = outlook.stable.revisions.get(policy_name, "") if outlook.stable else ""
    candidate = ""
    if outlook.candidate is not None and outlook.decision.state.candidate:
        candidate = outlook.candidate.revisions.get(policy_name, "")
    written = {
        "stableRevision": stable or str(before.get("stableRevision") or ""),
        "candidateRevision": candidate if candidate != stable else "",
        "rejectedRevision": rejected if rejected == newest else "",
    }
    held = outlook.stable.objects.get(("Policy", policy_name)) if outlook.stable else None
    # A name contains only the first digits of a hash, so the whole content is compared.
    same = held is None or policies.content_hash(held) == policies.content_hash(obj)
    condition = _policy_condition(obj, outlook, written, in_force=same and written["stableRevision"] == newest)
    return SetStatus(
        obj,
        WRITER,
        {
            **{key: value for key, value in written.items() if value},
            "conditions": conditions.render(obj, [condition], now),
        },
    )


def _policy_condition(obj: Object, outlook: Outlook, revisions: Mapping[str, str], *, in_force: bool) -> Condition:
    decision, newest = outlook.decision, policies.revision_name(obj)
    if revisions["rejectedRevision"]:
        before = find(obj, "RolledOut")
        if not decision.reject and before is not None and before["reason"] == "RolledBack":
            return Condition("RolledOut", FALSE, "RolledBack", before["message"])
        return Condition("RolledOut", FALSE, "RolledBack", decision.condition.message)
    if revisions["candidateRevision"]:
        return Condition("RolledOut", decision.condition.status, decision.condition.reason, decision.condition.message)
    if in_force:
        complete = Condition("RolledOut", TRUE, "Complete", f"revision {newest} is in force in pool {outlook.pool}")
        return Condition("RolledOut", FALSE, _MOVES, _lagging(outlook)) if outlook.behind else complete
    if not revisions["stableRevision"]:
        return Condition("RolledOut", UNKNOWN, "Pending", f"pool {outlook.pool} has no release with it yet")
    message = (
        f"pool {outlook.pool} has revision {revisions['stableRevision']} in force; {newest} waits to be rolled out"
    )
    return Condition("RolledOut", FALSE, _MOVES, message)


def statuses(outlook: Outlook, definitions: Definitions, inventory: Inventory, now: datetime) -> Iterator[SetStatus]:
    """Yield the rollout part of the status of every pipeline and every policy of a namespace that a pool serves.

    If pipelines of several pools name a policy, only one pool writes about it.
    """
    waiting = [inventory.get(ref) for ref in definitions.left_out]
    for obj in (*definitions.pipelines, *(waiter for waiter in waiting if waiter is not None)):
        yield pipeline(obj, outlook, inventory, now)
    yield from _withdrawn(outlook, definitions.namespace, inventory)
    homes = _homes(definitions.namespace, inventory)
    releases = [release for release in (outlook.stable, outlook.candidate, definitions.release) if release is not None]
    running = {policy_name for release in releases for policy_name in release.revisions}
    for obj in inventory.all("Policy", definitions.namespace):
        policy_name = name(obj)
        if policy_name in outlook.decision.reject:
            continue  # already written, before the pool's status
        if policy_name in running and homes.get(policy_name, outlook.pool) == outlook.pool:
            yield policy(obj, outlook, now)
        elif policy_name not in running and policy_name not in homes and status(obj).get("stableRevision"):
            yield SetStatus(obj, WRITER, {})  # no pipeline names it any more


def _withdrawn(outlook: Outlook, space: str, inventory: Inventory) -> Iterator[SetStatus]:
    """Yield the removal of what the pool has said of deleted pipelines that it has not in force any more.

    A finalizer of somebody else may keep them for long.
    """
    running = outlook.stable.objects if outlook.stable else {}
    for obj in inventory.all("Pipeline", space):
        if deleting(obj) and status(obj).get("pool") == outlook.pool and ("Pipeline", name(obj)) not in running:
            yield SetStatus(obj, WRITER, {})


def taken_back(pool: Object, served: Collection[str], inventory: Inventory) -> Iterator[SetStatus]:
    """Yield the removal of what a pool has said of pipelines of namespaces that it does not serve any more."""
    for obj in inventory.all("Pipeline"):
        if namespace(obj) not in served and name(pool) == references.pool(obj) == status(obj).get("pool"):
            yield SetStatus(obj, WRITER, {})
