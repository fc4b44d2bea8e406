# SPDX-License-Identifier: BSD-2-Clause
"""The results of an analysis on the members of a pool, combined for one status: the worst of them, within limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEMBERS_LISTED = 256
ACCESSES_LISTED = 64
WARNINGS_LISTED = 20
CAUSES_LISTED = 3
_TEXT_LIMIT, _SHORT_LIMIT = 1024, 256
"""Character limits: of one text in a status, and of a text in a list that may have hundreds."""
TALLY = ("expected", "granted", "refused", "undecided")
_CAUSE_TEXTS = ("policy", "instance", "conduit", "reason", "suggestion", "mode")
_WARNING_TEXTS = ("task", "access", "conduits", "instance", "message", "suggestion")


class State(StrEnum):
    """The state of a member in a run."""

    UNREADY = "Unready"
    """Its monitor does not serve; the member takes no part."""
    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


@dataclass(frozen=True)
class MemberRun:
    """One member's part in a run."""

    name: str
    state: State
    bundle: str = ""
    """Hash of the member's bundle in force."""
    phase: str = ""
    done: int = 0
    total: int = 0
    """The total of the phase; 0 when unknown."""
    analysis: Mapping[str, Any] | None = None
    """The monitor's answer, once the state is COMPLETE: ``Analysis`` of its HTTP API."""
    error: str = ""
    """Why the state is FAILED or UNREADY, in a sentence."""
    waiting: str = ""
    """For what a RUNNING one waits, in a sentence."""


def usable(members: Sequence[MemberRun]) -> list[MemberRun]:
    """Return the members that take part."""
    return [member for member in members if member.state != State.UNREADY]


def rows(members: Sequence[MemberRun]) -> list[dict[str, Any]]:
    """Return the members' rows for a run's status."""
    return [_row(member) for member in members[:MEMBERS_LISTED]]


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
    if member.error or member.waiting:
        values["message"] = (member.error or member.waiting)[:_TEXT_LIMIT]
    return values


def progress(members: Sequence[MemberRun]) -> dict[str, Any]:
    """Add up the progress of the members; the phase is the phase of the slowest one."""
    running = [member for member in members if member.state == State.RUNNING]
    behind = min(running, key=lambda member: member.done / member.total if member.total else 0.0, default=None)
    return {
        "phase": behind.phase if behind else "",
        "done": sum(member.done for member in members),
        "total": sum(member.total for member in members),
    }


def found(members: Sequence[MemberRun]) -> dict[str, Any]:
    """Return the results of the members that are done, as fields of a run's status."""
    results = {member.name: member.analysis for member in members if member.analysis is not None}
    warnings = _warnings(results)
    values: dict[str, Any] = {
        "accesses": _accesses(results),
        "warnings": warnings[:WARNINGS_LISTED],
        "warningsTotal": len(warnings),
    }
    if results:
        values["durationMilliseconds"] = max(map(_milliseconds, results.values()))
        values |= _tally(min((results[member] for member in sorted(results)), key=share))
    return values


def shortened(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Return a member's result with the accesses that a status may list: of others that are kept, it lists none."""
    accesses = sorted(analysis["accesses"], key=lambda entry: (share(entry), *_key(entry)))
    return {**analysis, "accesses": accesses[:ACCESSES_LISTED]}


def share(entry: Mapping[str, Any]) -> float:
    """Return the share of the expected accesses that is granted; 1 when no access is expected."""
    return int(entry["granted"]) / int(entry["expected"]) if int(entry["expected"]) else 1.0


def refusing(run_status: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the policies that refuse expected accesses, with the known number of refusals; most first."""
    counts = Counter[str]()
    for entry in run_status.get("accesses") or ():
        for cause in entry.get("refusedBecause") or ():
            counts[str(cause.get("policy") or "")] += int(cause["count"])
    return counts.most_common(CAUSES_LISTED)


def _tally(entry: Mapping[str, Any]) -> dict[str, int]:
    return {field: int(entry[field]) for field in TALLY}


def _milliseconds(analysis: Mapping[str, Any]) -> int:
    return int(analysis["durationMicroseconds"]) // 1000


def _accesses(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the result of each task's expected accesses, from the member that grants the least.

    If there are more entries than a status holds, the ones with the smallest granted share are kept.
    """
    worst: dict[tuple[str, str, str], dict[str, Any]] = {}
    for member in sorted(results):
        for entry in results[member].get("accesses") or ():
            key = _key(entry)
            if key not in worst or share(entry) < share(worst[key]):
                worst[key] = {
                    **{field: str(entry[field])[:_TEXT_LIMIT] for field in ("task", "access", "conduits")},
                    "instances": int(entry["instances"]),
                    **_tally(entry),
                    **{
                        field: _causes(entry[field])
                        for field in ("refusedBecause", "undecidedBecause")
                        if entry.get(field)
                    },
                }
    kept = sorted(worst, key=lambda key: (share(worst[key]), key))[:ACCESSES_LISTED]
    return [worst[key] for key in sorted(kept)]


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["task"], entry["access"], entry["conduits"]


def _causes(causes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**_texts(cause, _CAUSE_TEXTS, _SHORT_LIMIT), "count": int(cause["count"])} for cause in causes[:CAUSES_LISTED]
    ]


def _warnings(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the warnings about tasks that cannot do their work, each once, because members run the same pipeline."""
    listed: dict[tuple[str, ...], dict[str, Any]] = {}
    for member in sorted(results):
        for warning in results[member].get("warnings") or ():
            key = tuple(str(warning.get(field) or "") for field in ("task", "access", "conduits", "message"))
            listed.setdefault(
                key, {**_texts(warning, _WARNING_TEXTS, _TEXT_LIMIT), "instances": int(warning["instances"])}
            )
    return [listed[key] for key in sorted(listed)]


def _texts(entry: Mapping[str, Any], fields: Sequence[str], limit: int) -> dict[str, str]:
    return {field: str(entry[field])[:limit] for field in fields if entry.get(field)}
