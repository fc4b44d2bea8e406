# SPDX-License-Identifier: BSD-2-Clause
"""The status of a JailPool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shai_operator.reconcile import conditions, member_rows, members, rollout_state, tenancy
from shai_operator.reconcile.actions import NORMAL, WARNING, Emit
from shai_operator.reconcile.bundles import POOL_LABEL
from shai_operator.reconcile.conditions import FALSE, TRUE, Condition
from shai_operator.reconcile.counts import IS_READY, count
from shai_operator.reconcile.machines import REPLACING
from shai_operator.reconcile.objects import generation, name, status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from shai_operator.reconcile.members import Observation, Standing
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.rollout_state import Decision
    from shai_operator.reconcile.tenants import Tenant
    from shai_operator.reconcile.upkeep import Kept

WRITER = "shai-operator"
_NAMED = 5
_PROVISIONING = "Provisioning"
_MOVES = "Progressing"
"""The reason of a rollout that is neither held nor waits for people."""
_SERVES_LIMIT = 1024
_IS_PROVISIONED = ("is provisioned", "are provisioned")
_FAULTS = frozenset(
    {
        "HostUnreachable", "HostKeyMismatch", "AuthenticationFailed", "PlaybookFailed", "TimedOut", "ImageMissing",
        "NoVirtualization", "StorageFull", "ImageFetchFailed", "ChecksumMismatch", "ArchitectureMismatch",
        "GuestUnreachable", "BridgeConflict", "JailStuck", "ClockSkew", "EnforcementInsufficient",
        "Unreachable", "MonitorNotReady", "BundleRefused", "TaskFailed", "AnalysisFailed", members.WITHDRAWN,
    }
)  # fmt: skip
"""Reasons of rows for which there are events."""
_UNDER_WAY = frozenset({"Surveying", _PROVISIONING})
"""Reasons of the condition Provisioned that are progress, and no faults of the pool."""


class Absent(NamedTuple):
    """Replicas of which there is no member, because its virtual machine is replaced or its host is gone."""

    members: int
    reason: str


def write(
    pool: Object,
    kept: Sequence[Kept],
    leaving: Sequence[tuple[Observation, Standing]],
    decisions: Mapping[Tenant, Decision],
    *,
    namespaces: Sequence[Mapping[str, Any]],
    trouble: Condition | None,
    now: datetime,
    machines: Condition | None = None,
) -> dict[str, Any]:
    """Return the status, except what is about virtual machines.

    ``decisions`` are about the namespaces that are known; ``namespaces`` is the field of this name; ``trouble`` says
    why no members can be made; ``machines`` is the condition Progressing where virtual machines determine it.
    """
    all_members = [(entry.member, entry.standing) for entry in kept] + list(leaving)
    rows = [member_rows.row(*entry) for entry in sorted(all_members, key=lambda member: member[0].ordinal)]
    absent = Absent(
        max(0, int(pool["spec"].get("replicas", 1)) - len(kept)),
        REPLACING if machines is not None and machines.reason == REPLACING else _PROVISIONING,
    )
    wanted = [
        _ready(kept, trouble, decisions, absent),
        machines or _progressing(kept, leaving, decisions),
        _provisioned(kept, trouble, absent),
    ]
    return {
        "observedGeneration": generation(pool),
        "runtimes": _runtimes(pool, kept),
        **counts(kept, leaving),
        "availableReplicas": sum(1 for entry in kept if entry.standing.ready and not _busy_with_update(entry)),
        "selector": f"{POOL_LABEL}={name(pool)}",
        "members": rows,
        "namespaces": list(namespaces),
        "serves": ", ".join(dict.fromkeys(entry["name"] for entry in namespaces))[:_SERVES_LIMIT],
        "conditions": conditions.render(pool, wanted, now),
    }


def of_unknown_provider(pool: Object, known: Iterable[str], now: datetime) -> dict[str, Any] | None:
    """Return the status of a pool whose provider this version of the operator does not have; None when it has it.

    The schema lets no such pool in. One that a later version has let in may still be stored. Its members stay as they
    are: nobody here knows where they are.
    """
    wanted = str(pool["spec"].get("provider"))
    if wanted in (known := sorted(known)):
        return None
    message = (
        f"provider {wanted!r} is none that this operator knows ({', '.join(known)}): run the version of the operator "
        "with which the pool was made, or delete the pool and make it anew"
    )
    said = [Condition(of, FALSE, "ProviderUnknown", message) for of in ("Ready", "Provisioned")]
    rendered = conditions.render(pool, said, now)
    return {**status(pool), "observedGeneration": generation(pool), "conditions": rendered}


def counts(kept: Sequence[Kept], leaving: Sequence[tuple[Observation, Standing]]) -> dict[str, int]:
    """Return how many members there are, and how many are ready and up to date: of a pool, or of a share of it."""
    return {
        "replicas": len(kept) + len(leaving),
        "readyReplicas": sum(1 for entry in kept if entry.standing.ready),
        "updatedReplicas": sum(1 for entry in kept if _up_to_date(entry) and entry.member.release == entry.newest),
    }


def describe(kept: Sequence[Kept], decision: Decision) -> dict[str, Any]:
    """Return the state of a rollout for the pool's status; ``kept`` are the members of its share."""
    written = rollout_state.write(decision.state)
    written["verdict"] = decision.verdict
    written["reason"] = decision.condition.reason
    written["message"] = decision.condition.message[: conditions.MESSAGE_LIMIT]
    if decision.state.candidate:
        written["steps"] = decision.steps
        written["members"] = sum(1 for entry in kept if entry.member.release == decision.state.candidate)
    return written


def events(
    pool: Object,
    all_members: Sequence[tuple[Observation, Standing]],
    decisions: Mapping[Tenant, Decision],
    trouble: Condition | None = None,
) -> Iterator[Emit]:
    """Yield events: about a pool whose members cannot be made, members whose reason has changed, and the rollouts."""
    before = conditions.find(pool, "Provisioned") or {}
    if trouble is not None and trouble.reason not in _UNDER_WAY and trouble.reason != before.get("reason"):
        yield Emit(pool, WARNING, trouble.reason, trouble.message)
    for member, standing in all_members:
        if standing.reason == member.reason:
            continue
        if standing.reason in _FAULTS:
            yield Emit(pool, WARNING, standing.reason, f"member {member.name}: {standing.message}")
        elif standing.reason == "Ready" and member.reason in _FAULTS | {_PROVISIONING, "Starting"}:
            yield Emit(pool, NORMAL, "MemberReady", f"member {member.name} is ready")
    for tenant, decision in decisions.items():
        for event in decision.events:
            yield Emit(pool, event.type, event.reason, f"namespace {tenant.name}: {event.message}")


def waiting(members_of_pool: Iterable[Observation]) -> str:
    """Return which member waits for what before work on it begins, as the end of a message; empty: none waits."""
    found = next((member for member in members_of_pool if member.job and member.job.waiting), None)
    return f"; {found.name} {found.job.waiting}" if found and found.job else ""


def _busy_with_update(entry: Kept) -> bool:
    return entry.member.busy("provision", "remove")


def _runtimes(pool: Object, kept: Sequence[Kept]) -> list[str]:
    """Return the runtimes that all members have, of those that the pool gives.

    Members get them when they are installed. Until each has the present configuration, those are known that all had.
    """
    installed = [entry for entry in kept if entry.member.configuration]
    if all(entry.member.configuration == entry.digest for entry in installed):
        return list(tenancy.runtimes(pool))
    had = status(pool).get("runtimes") or ()
    return [runtime for runtime in tenancy.runtimes(pool) if runtime in had]


def _up_to_date(entry: Kept) -> bool:
    return bool(entry.member.configuration) and entry.digest in ("", entry.member.configuration)


def _ready(
    kept: Sequence[Kept], trouble: Condition | None, decisions: Mapping[Tenant, Decision], absent: Absent
) -> Condition:
    unready = [entry for entry in kept if not entry.standing.ready]
    if trouble is not None and (unready or not kept or trouble.reason not in _UNDER_WAY):
        return Condition("Ready", FALSE, trouble.reason, trouble.message)
    if unready:
        named = [f"{entry.member.name}: {entry.standing.message}" for entry in unready[:_NAMED]]
        more = f"; and {len(unready) - _NAMED} more" if len(unready) > _NAMED else ""
        message = f"{count(len(kept) - len(unready), 'member', IS_READY, of=len(kept))}; {'; '.join(named)}{more}"
        return Condition("Ready", FALSE, unready[0].standing.reason, message)
    if absent.members:
        return Condition("Ready", FALSE, absent.reason, _without(absent, kept, IS_READY))
    rolling = {tenant for tenant, decision in decisions.items() if decision.state.candidate}
    refused = [
        entry for entry in kept if entry.standing.reason == "BundleRefused" and entry.member.tenant not in rolling
    ]
    if refused:
        message = f"{refused[0].member.name} refuses its bundle and keeps the one before: {refused[0].standing.message}"
        return Condition("Ready", FALSE, "BundleRefused", message)
    return _behind(kept) or Condition("Ready", TRUE, "AllReady", count(len(kept), "member", IS_READY, of=len(kept)))


def _behind(kept: Sequence[Kept]) -> Condition | None:
    """Say that members serve, but not yet as the spec and their namespaces' rollouts want it; None: all do.

    Facts do not count: they reach members at any time.
    """
    old = [entry for entry in kept if not _up_to_date(entry)]
    if old:
        updated = count(len(kept) - len(old), "member", ("is up to date", "are up to date"), of=len(kept))
        return Condition("Ready", FALSE, "Updating", f"all members serve; {updated}: {_names(old)} to be updated")
    pending = [entry for entry in kept if entry.bundle and entry.member.release != entry.bundle.release.name]
    if pending:
        return Condition(
            "Ready", FALSE, "BundlePending", f"all members serve; to get another release: {_names(pending)}"
        )
    return None


def _names(entries: Sequence[Kept]) -> str:
    more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    return ", ".join(entry.member.name for entry in entries[:_NAMED]) + more


def _without(absent: Absent, kept: Sequence[Kept], verb: tuple[str, str]) -> str:
    """Say how many members there are; those that are missing come with the next virtual machine, or the next look."""
    why = ("is away while its virtual machine is replaced", "are away while virtual machines are replaced")
    if absent.reason == _PROVISIONING:
        why = ("is to be provisioned", "are to be provisioned")
    known = count(len(kept), "member", verb, of=len(kept) + absent.members)
    return f"{known}; {count(absent.members, 'member', why)}"


def _progressing(
    kept: Sequence[Kept], leaving: Sequence[tuple[Observation, Standing]], decisions: Mapping[Tenant, Decision]
) -> Condition:
    if any(entry.member.busy("provision") or not entry.member.configuration for entry in kept):
        waits = waiting(entry.member for entry in kept)
        return Condition("Progressing", TRUE, _PROVISIONING, f"members are being provisioned{waits}")
    if leaving:
        named = ", ".join(member.name for member, _ in leaving[:_NAMED])
        removed = count(len(leaving), "member", ("is being removed", "are being removed"))
        waits = waiting(member for member, _ in leaving)
        return Condition("Progressing", TRUE, "Draining", f"{removed}: {named}{waits}")
    if any(not _up_to_date(entry) for entry in kept):
        return Condition("Progressing", TRUE, "Updating", "members are being brought up to date")
    rollouts = [(tenant, decision.condition) for tenant, decision in decisions.items() if decision.state.candidate]
    if rollouts:
        tenant, condition = max(rollouts, key=lambda rollout: rollout[1].reason == _MOVES)
        moving = TRUE if condition.reason == _MOVES else FALSE
        return Condition("Progressing", moving, condition.reason, f"namespace {tenant.name}: {condition.message}")
    if any(entry.bundle is not None and entry.standing.reason in {"BundlePending", "Starting"} for entry in kept):
        return Condition("Progressing", TRUE, "Updating", "members are getting their bundle")
    return Condition("Progressing", FALSE, "Complete", "nothing is under way")


def _provisioned(kept: Sequence[Kept], trouble: Condition | None, absent: Absent) -> Condition:
    if trouble is not None:
        return trouble
    failed = [entry for entry in kept if entry.member.failed is not None]
    if failed:
        first = failed[0].member
        reason, said = (first.failed.reason, first.failed.message) if first.failed else ("", "")
        more = f"; {count(len(failed) - 1, 'more member', ('has', 'have'))} failed" if len(failed) > 1 else ""
        return Condition("Provisioned", FALSE, reason, f"member {first.name}: {said}{more}")
    missing = [entry for entry in kept if not _up_to_date(entry)]
    if missing:
        done = count(len(kept) - len(missing), "member", _IS_PROVISIONED, of=len(kept))
        message = f"{done} as spec says"
        return Condition("Provisioned", FALSE, _PROVISIONING, message)
    if absent.members:
        return Condition("Provisioned", FALSE, _PROVISIONING, _without(absent, kept, _IS_PROVISIONED))
    return Condition("Provisioned", TRUE, "Provisioned", count(len(kept), "member", _IS_PROVISIONED, of=len(kept)))
