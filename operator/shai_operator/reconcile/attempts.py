# SPDX-License-Identifier: BSD-2-Clause
"""The attempts of a TaskRun, as its status keeps them.

An attempt is written before the member is asked to start it, under a name that the member's monitor keeps. An operator
that ends in between asks again under the same name, which starts nothing twice. A monitor that has started anew since
has ended the attempt, or never began it: it counts in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.objects import spec, status, uid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.objects import Object

LISTED = 10
"""Attempts in a status; the schema limits the list."""
LONGEST_BACKOFF_SECONDS = 3600
_DEFAULT_BACKOFF_SECONDS = 10
_MESSAGE_LIMIT = 1024


class Reason(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"
    """The monitor ended, and with it the task."""
    STOPPED = "Stopped"
    """The task was stopped on the member, or the member's bundle no longer has it."""
    LOST = "Lost"
    """The member was removed."""


@dataclass(frozen=True)
class Refusal:
    """A kind of access that was denied during an attempt."""

    operation: str
    conduits: str
    policy: str
    count: int


@dataclass(frozen=True)
class Ending:
    """How an attempt ended, as far as the member's monitor knows."""

    reason: Reason
    message: str = ""
    exit_code: int | None = None
    """The program's exit status; None when it was killed, or did not run."""
    signal: str = ""
    restarts: int = 0
    denials: int = 0
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run."""

    number: int
    started_at: datetime
    monitor: str
    """When the monitor started that was asked for it, as its status says it: identifies the process."""
    ended_at: datetime | None = None
    reason: str = ""
    row: Mapping[str, Any] | None = None
    """Its row in the status; None: it was not written yet."""

    @property
    def open(self) -> bool:
        """Whether it goes on, as far as is known."""
        return self.ended_at is None


def of(run: Object) -> list[Attempt]:
    """Return the attempts in a run's status, oldest first; older ones than `LISTED` are no longer known."""
    return [_read(row) for row in status(run).get("attempts") or ()]


def active(run: Object) -> Attempt | None:
    """Return the attempt that goes on, None when there is none."""
    known = of(run)
    return known[-1] if known and known[-1].open else None


def identity(run: Object, attempt: Attempt) -> str:
    """Return the name of an attempt to a monitor: no other attempt, of whatever run, has it."""
    return f"{uid(run)}-{attempt.number}"


def begun(run: Object, monitor: str, now: datetime) -> Attempt:
    """Return a run's next attempt."""
    known = of(run)
    return Attempt(known[-1].number + 1 if known else 1, now, monitor)


def ended(attempt: Attempt, ending: Ending, now: datetime) -> Attempt:
    """Return an attempt that has ended."""
    row = {
        **rendered(attempt),
        "completionTime": timestamp(now),
        "reason": str(ending.reason),
        "message": ending.message[:_MESSAGE_LIMIT],
        **_exit(ending),
        **({"restarts": ending.restarts} if ending.restarts else {}),
    }
    return replace(attempt, ended_at=now, reason=str(ending.reason), row=row)


def rendered(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt's row for the status."""
    if attempt.row is not None:
        return dict(attempt.row)
    return {"number": attempt.number, "startTime": timestamp(attempt.started_at), "monitorStarted": attempt.monitor}


def outcome(ending: Ending) -> dict[str, Any]:
    """Return the part of a run's status that follows from its last attempt."""
    return {
        **_exit(ending),
        "denials": ending.denials,
        "refusals": [
            {
                "operation": refusal.operation,
                "count": refusal.count,
                **({"conduits": refusal.conduits} if refusal.conduits else {}),
                **({"policy": refusal.policy} if refusal.policy else {}),
            }
            for refusal in ending.refusals
        ],
    }


def retry_at(run: Object, known: Sequence[Attempt]) -> datetime | None:
    """Return when the next attempt is due after the last one, which has ended; None: there is none."""
    wanted = spec(run).get("retries") or {}
    last = known[-1]
    if last.number > int(wanted.get("limit", 0)) or last.ended_at is None:
        return None
    first = int(wanted.get("backoffSeconds", _DEFAULT_BACKOFF_SECONDS))
    seconds = min(first * 2 ** min(last.number - 1, 16), LONGEST_BACKOFF_SECONDS)
    return last.ended_at + timedelta(seconds=seconds)


def _exit(ending: Ending) -> dict[str, Any]:
    if ending.exit_code is not None:
        return {"exitCode": ending.exit_code}
    return {"signal": ending.signal} if ending.signal else {}


def _read(row: Mapping[str, Any]) -> Attempt:
    completed = row.get("completionTime")
    return Attempt(
        number=int(row["number"]),
        started_at=datetime.fromisoformat(row["startTime"]),
        monitor=str(row.get("monitorStarted", "")),
        ended_at=datetime.fromisoformat(completed) if completed else None,
        reason=str(row.get("reason", "")),
        row=row,
    )
