# SPDX-License-Identifier: BSD-2-Clause
"""Deletes a pool: drains and removes its members before the finalizer is removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import machines, members, pool_status, upkeep
from shai_operator.reconcile.actions import WARNING, Emit, Requeue, SetFinalizer, SetStatus
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.members import NOT_TRIED, ForgetMembers
from shai_operator.reconcile.objects import FINALIZER, FORCE_DELETE, finalizers, force_delete, name, spec, status
from shai_operator.reconcile.pool_plan import ForgetReleases, PoolPlan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.pool_plan import Observed, PoolAction


def reconcile(pool: Object, observed: Observed, now: datetime) -> PoolPlan:
    """Drain and remove all members, then remove the finalizer."""
    plan = PoolPlan()
    if FINALIZER not in finalizers(pool):
        return plan
    wanted = upkeep.care(spec(pool), machines.jails(pool) if machines.has_machines(pool) else None)
    known = [member for member in observed.members.values() if member.host or member.configuration or member.busy()]
    given_up = [member for member in known if force_delete(pool) and _stuck(member)]
    left = [replace(member, draining_since=member.draining_since or now) for member in known if member not in given_up]
    removals = list(upkeep.remove(left, wanted, now))
    left = upkeep.forget_configuration(left, removals)
    for member in given_up:
        plan.add(*give_up(pool, member, "it cannot be removed and shai.dev/force-delete is set"))
    plan.add(SetStatus(pool, pool_status.WRITER, _deletion_status(pool, left, now)), *removals)
    if not left:
        plan.add(ForgetReleases(name(pool), frozenset()), SetFinalizer(pool, present=False))
    seconds = upkeep.waits(left, wanted, now)
    if seconds is not None:
        plan.add(Requeue(seconds))
    return plan


def _stuck(member: Observation) -> bool:
    """Whether the removal of a member was tried and has failed, and is not being tried at present."""
    begun, failed = member.draining_since, member.removal_failed
    if begun is None or failed is None or failed.reason == NOT_TRIED:
        return False
    return not member.busy() and failed.at >= begun


def _deletion_status(pool: Object, left: Sequence[Observation], now: datetime) -> dict[str, Any]:
    stuck = [(member, failed) for member in left if (failed := member.removal_failed) is not None]
    message = f"the pool is being deleted; {count(len(left), 'member', ('is left', 'are left'))}"
    message += pool_status.waiting(left)
    reason = "Deleting"
    if stuck:
        member, failed = stuck[0]
        reason = failed.reason
        message += (
            f". Member {member.name} cannot be removed: {failed.message}. It is tried again; to give up on "
            f"what cannot be reached: kubectl annotate jailpool {name(pool)} {FORCE_DELETE}=true"
        )
    trouble = Condition("Provisioned", FALSE, reason, message)
    leaving_members = [(member, members.standing(member, {}, "")) for member in left]
    namespaces = status(pool).get("namespaces") or ()
    return pool_status.write(pool, (), leaving_members, {}, namespaces=namespaces, trouble=trouble, now=now)


def give_up(pool: Object, member: Observation, why: str) -> list[PoolAction]:
    """Forget a member that cannot be removed, and report where its files remain."""
    left = f"{spec(pool).get('directory', '')}/{member.name}".replace("//", "/")
    message = f"member {member.name} was given up, since {why}; what is left of it on {member.host} is in {left}"
    return [ForgetMembers((member.place,)), Emit(pool, WARNING, "MemberGivenUp", message)]
