# SPDX-License-Identifier: BSD-2-Clause
"""Puts bundles in force on a pool's members, starts their tasks, and compares bundles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.control.bringup import BringUp, BringUpError
from shai_operator.control.jobs import CancelledError
from shai_operator.control.member_observer import failure
from shai_operator.monitors import reading
from shai_operator.monitors.errors import MonitorError, MonitorUnreachableError
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.members import NOT_TRIED, Progress
from shai_operator.reconcile.objects import name, reference

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from shai_operator.control.jobs import Job
    from shai_operator.control.member_observer import MemberObserver
    from shai_operator.control.services import Services
    from shai_operator.reconcile import members
    from shai_operator.reconcile.members import ApplyBundle, Failure, Monitor
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.pools import CompareBundles

BUNDLE_REFUSED = "BundleRefused"
PROGRESS_SECONDS = 0.5
"""How long progress may be delayed before it is written, so that a fast job does not write a status for every step."""


class Deployer:
    """Starts the jobs ``apply``, ``bringUp`` and ``compare`` of one pool's members."""

    def __init__(self, services: Services, seen: MemberObserver) -> None:
        self._services = services
        self._members = seen
        self.effects: dict[str, Effect] = {}
        """The last comparison of each namespace."""
        self.comparison_refusals: dict[str, str] = {}
        """By release: the message of the monitor that refused to compare the release."""
        self._not_compared: dict[str, Failure] = {}
        """By namespace: the last comparison, when the monitor gave no answer that counts."""

    def apply(self, pool: Object, action: ApplyBundle) -> None:
        """Start to swap a member to a bundle."""
        label, sources = action.bundle.label, action.bundle.sources()

        async def work(_: Job) -> None:
            seen = self._members.of(action.member.name)
            try:
                await self._members.client(action.member.name).apply(sources, label)
            except MonitorUnreachableError as error:
                seen.unreachable = str(error)
            except MonitorError as error:
                before = seen.refused.get(label)
                seen.refused[label] = failure(BUNDLE_REFUSED, str(error), before, passing=error.unavailable)
            else:
                seen.refused.pop(label, None)
                seen.bring_up_failed = None
            self._members.look_now()

        self._begin(pool, "apply", action.member.name, work)

    def bring_up(self, pool: Object, action: members.BringUp, monitor: Monitor | None) -> None:
        """Start the tasks and analyses of a member's bundle."""
        if monitor is None:
            return  # the monitor does not answer any more, which the next observation reports

        async def work(job: Job) -> None:
            seen = self._members.of(action.member.name)

            def tell(step: str) -> None:
                job.progress = Progress(play="bring up", task=step)
                self._services.loop.queue.add_after(reference(pool), PROGRESS_SECONDS)

            try:
                called = action.member.name
                client = self._members.client(called)
                # What was observed can be older than the end of the last bring-up: its tasks would run once more.
                present = reading.monitor(await client.status())
                start = BringUp(called, client, present, self._services.runner, tell)
                await job.unless_cancelled(start.run(action.pipelines))
            except (BringUpError, MonitorError, CancelledError) as error:
                if job.cancel.is_set():
                    return  # another job has superseded this one, and decides what runs
                reason = error.reason if isinstance(error, BringUpError) else "TaskFailed"
                confidential = isinstance(error, BringUpError) and error.confidential
                seen.bring_up_failed = failure(reason, str(error), seen.bring_up_failed, confidential=confidential)
            else:
                seen.bring_up_failed = None
            self._members.look_now()

        self._begin(pool, "bringUp", action.member.name, work)

    def compare(self, pool: Object, action: CompareBundles) -> None:
        """Start to compare a candidate with a member's bundle in force.

        A monitor that ends meanwhile, or cannot compare at present, refuses nothing: it is asked again after a while.
        """
        sources, candidate = action.bundle.sources(), action.bundle.release.name
        before = self._not_compared.get(action.namespace)
        if before is not None and datetime.now(UTC) < before.retry_at():
            return

        def tell(_: Mapping[str, object]) -> None: ...

        async def work(_: Job) -> None:
            try:
                found = await self._members.client(action.member).compare(sources, tell)
            except MonitorError as error:
                if error.unavailable:
                    self._not_compared[action.namespace] = failure(NOT_TRIED, str(error), before)
                    self._members.look_now()
                    return
                self.comparison_refusals[candidate] = str(error)
            else:
                self.effects[action.namespace] = Effect(action.before, candidate, found)
            self._not_compared.pop(action.namespace, None)

        self._services.jobs.start(f"{name(pool)}/compare/{action.namespace}", work, self._again(pool))

    def _again(self, pool: Object) -> Callable[[], None]:
        return lambda: self._services.loop.queue.add(reference(pool))

    def _begin(self, pool: Object, kind: str, member: str, work: Callable[[Job], Awaitable[None]]) -> None:
        key = f"{name(pool)}/{kind}/{member}"
        self._members.began(member, kind, self._services.jobs.start(key, work, self._again(pool)))
