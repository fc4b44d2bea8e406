# SPDX-License-Identifier: BSD-2-Clause
"""The controller of MemberReadings: it passes questions on to members' monitors, and sealed answers back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.monitors.errors import MonitorAnswerError, MonitorError, MonitorUnreachableError
from shai_operator.reconcile import member_readings
from shai_operator.reconcile.member_readings import Answered, Failed
from shai_operator.reconcile.objects import status, uid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Job, Jobs
    from shai_operator.control.loop import Loop
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.run_controller import PoolMembers
    from shai_operator.reconcile.member_readings import Ask
    from shai_operator.reconcile.objects import Object, Reference

_MALFORMED, _UNPROCESSABLE, _UNAVAILABLE = 400, 422, 503
_UNKNOWN = (404, 405)
_MORE = "of which the JailPool's status says more"


class MemberReadingController:
    """The controller of MemberReadings."""

    def __init__(self, loop: Loop, executor: Executor, jobs: Jobs, pools: PoolMembers) -> None:
        self._loop = loop
        self._executor = executor
        self._jobs = jobs
        self._pools = pools
        self._asked: dict[Reference, str] = {}
        """The job of each reading that was asked for, by its uid: another one may get the name of one that is gone."""

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one reading."""
        reading = self._loop.inventory.get(ref)
        key = "" if reading is None else f"reading/{uid(reading)}"
        if self._asked.get(ref, key) != key:
            self._jobs.forget(self._asked[ref])
            if not self._jobs.running(self._asked[ref]):
                del self._asked[ref]  # otherwise its end brings the name back
        return None if reading is None else await self._step(ref, reading, key)

    async def _step(self, ref: Reference, reading: Object, key: str) -> float | None:
        job = self._jobs.get(key)
        known: Answered | Failed | None = None
        if job is not None and job.done:
            known = job.result or Failed("", "Refused", "asking the member failed; the operator's log has more")
        called = member_readings.pool(reading, self._loop.inventory)
        seen = self._pools.members(called) if called else None
        silent = self._silent(called, seen) if seen is not None and seen.all_looked_at() else None
        decision = member_readings.reconcile(
            reading, silent, known, self._loop.inventory, datetime.now(UTC), asked=self._asked
        )
        wait = await self._executor.execute(decision.plan)
        if known is not None:
            self._jobs.forget(key)  # what was answered is written
            self._asked.pop(ref, None)
        if decision.request is not None and seen is not None:
            self._ask(ref, key, decision.request, seen)
        return wait

    def _silent(self, called: str, seen: MemberObserver) -> Mapping[str, str]:
        """Return why members cannot be asked. Readers see it: it names no host."""
        pool = self._loop.inventory.find("JailPool", "", called)
        found = {}
        for row in status(pool or {}).get("members") or ():
            known = seen.of(str(row["name"]))
            if known.unreachable:
                found[str(row["name"])] = f"it cannot be reached, {_MORE}"
            elif known.monitor is None:
                found[str(row["name"])] = f"its monitor has not answered yet, {_MORE}"
        return found

    def _ask(self, ref: Reference, key: str, wanted: Ask, seen: MemberObserver) -> None:
        async def work(_: Job) -> Answered | Failed:
            try:
                return Answered(wanted.member, await seen.client(wanted.member).read(wanted.request))
            except MonitorError as error:
                return _failed(wanted.member, error)

        if ref in self._asked and self._asked[ref] != key:
            return  # the one before has not ended yet, and when it does, the name comes back
        self._asked[ref] = key
        self._jobs.start(key, work, lambda: self._loop.queue.add(ref))


def _failed(member: str, error: MonitorError) -> Failed:
    """Return why there is no answer. Where a monitor is, and what its disk has, is not for readers."""
    if isinstance(error, MonitorUnreachableError | MonitorAnswerError):
        return Failed(member, "Unreachable", f"member {member} does not answer, {_MORE}; try again, or another member")
    if error.status == _UNAVAILABLE:
        why = f"member {member} cannot record the reading in its audit log, so it does not answer, {_MORE}"
        return Failed(member, "NotRecorded", why)
    if error.status in _UNKNOWN:
        why = f"the monitor of member {member} is of an earlier version; it answers when its pool has been updated"
        return Failed(member, "Refused", why)
    if error.status in (_MALFORMED, _UNPROCESSABLE):
        return Failed(member, "Refused", f"member {member} refuses the question: {error}")
    return Failed(member, "Refused", f"member {member} failed to answer; the log of its monitor says why")
