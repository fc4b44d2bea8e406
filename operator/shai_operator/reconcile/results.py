# SPDX-License-Identifier: BSD-2-Clause
"""What the members of a pool say of an analysis, as one status shows it: the worst of them, within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEMBERS_LISTED = 256
COVERAGE_LISTED = 64
BLOCKED_LISTED = 20
_TEXT_LIMIT = 1024
"""Characters of one text in a status."""
_FLOW_TEXTS = ("instance", "access", "conduit", "policy", "obligation", "suggestion")


class State(StrEnum):
    """How far a member is with a run."""

    UNREADY = "Unready"
    """Its monitor does not serve: it is left out."""
    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


@dataclass(frozen=True)
class MemberRun:
    """One member's part of a run."""

    name: str
    state: State
    bundle: str = ""
    """Hash of the bundle in force there."""
    phase: str = ""
    done: int = 0
    total: int = 0
    """Of the phase; 0 when unknown."""
    analysis: Mapping[str, Any] | None = None
    """The monitor's answer, once the state is COMPLETE: ``Analysis`` of its HTTP API."""
    error: str = ""
    """Why it is FAILED or UNREADY, in a sentence."""


def usable(members: Sequence[MemberRun]) -> list[MemberRun]:
    """Pick the members that take part."""
    return [one for one in members if one.state != State.UNREADY]


def rows(members: Sequence[MemberRun]) -> list[dict[str, Any]]:
    """Return the members' rows of a run's status."""
    return [_row(one) for one in members[:MEMBERS_LISTED]]


def _row(member: MemberRun) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": member.name,
        "state": member.state.value,
        "done": member.done,
        "total": member.total,
    }
    if member.bundle:
        values["bundle"] = member.bundle
    if member.analysis is not None:
        values["durationMilliseconds"] = _milliseconds(member.analysis)
        values |= {key: int(member.analysis[key]) for key in ("conduits", "classes", "instances")}
    if member.error:
        values["message"] = member.error[:_TEXT_LIMIT]
    return values


def progress(members: Sequence[MemberRun]) -> dict[str, Any]:
    """Add up how far the members are; the phase is that of the one that has most before it."""
    running = [one for one in members if one.state == State.RUNNING]
    behind = min(running, key=lambda one: one.done / one.total if one.total else 0.0, default=None)
    return {
        "phase": behind.phase if behind else "",
        "done": sum(one.done for one in members),
        "total": sum(one.total for one in members),
    }


def found(members: Sequence[MemberRun]) -> dict[str, Any]:
    """Return what the members that are done have found, as fields of a run's status."""
    results = {one.name: one.analysis for one in members if one.analysis is not None}
    flows, total = _blocked(results)
    values: dict[str, Any] = {"coverage": _coverage(results), "blocked": flows, "blockedTotal": total}
    if results:
        values["durationMilliseconds"] = max(map(_milliseconds, results.values()))
    return values


def share(entry: Mapping[str, Any]) -> float:
    """Return the share of the expected accesses that was validated; 1 when none was expected."""
    return int(entry["validated"]) / int(entry["expected"]) if int(entry["expected"]) else 1.0


def _milliseconds(analysis: Mapping[str, Any]) -> int:
    return int(analysis["durationMicroseconds"]) // 1000


def _coverage(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how much was validated of what each task is expected to access: the worst member's count.

    Of more entries than a status holds, those with the smallest share.
    """
    worst: dict[tuple[str, str, str], dict[str, Any]] = {}
    for member in sorted(results):
        for entry in results[member].get("coverage") or ():
            key = entry["task"], entry["access"], entry["conduits"]
            if key not in worst or share(entry) < share(worst[key]):
                worst[key] = {
                    **{field: str(entry[field])[:_TEXT_LIMIT] for field in ("task", "access", "conduits")},
                    **{field: int(entry[field]) for field in ("instances", "expected", "validated")},
                }
    kept = sorted(worst, key=lambda key: (share(worst[key]), key))[:COVERAGE_LISTED]
    return [worst[key] for key in sorted(kept)]


def _blocked(results: Mapping[str, Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return some of the expected accesses that the policies forbid, and how many there are.

    Members of a pool run the same pipeline, so that the same flow is blocked on each: it is listed
    once, and the total is the largest of the members', not their sum.
    """
    listed: dict[tuple[str, ...], dict[str, Any]] = {}
    total = 0
    for member in sorted(results):
        total = max(total, int(results[member].get("blockedTotal") or 0))
        for flow in results[member].get("blocked") or ():
            key = tuple(str(flow.get(field) or "") for field in _FLOW_TEXTS[:-1])
            texts = {field: str(flow.get(field) or "")[:_TEXT_LIMIT] for field in _FLOW_TEXTS}
            listed.setdefault(
                key, {**{field: text for field, text in texts.items() if text}, "count": int(flow["count"])}
            )
    return [listed[key] for key in sorted(listed)][:BLOCKED_LISTED], total
