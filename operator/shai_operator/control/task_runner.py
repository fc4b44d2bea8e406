# SPDX-License-Identifier: BSD-2-Clause
"""Makes the TaskRuns that members need before they serve, and waits for their end."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.reconcile import conditions, task_run_members, task_run_objects
from shai_operator.reconcile.actions import Create, Plan
from shai_operator.reconcile.objects import reference, uid

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor
    from shai_operator.control.loop import Loop
    from shai_operator.reconcile.objects import Object, Reference

_GONE = "its TaskRun was deleted before it had ended"


class TaskRunner:
    """Runs tasks by way of TaskRuns. The controller of TaskRuns calls `look` for each that it has reconciled."""

    def __init__(self, loop: Loop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor
        self._waiting: dict[Reference, list[asyncio.Future[str]]] = {}

    def unfinished(self, space: str, pipeline: str, task: str, member: str) -> bool:
        """Whether a run of the task goes on on a member, or waits there."""
        return task_run_objects.unfinished(self._loop.inventory, space, pipeline, task, member) is not None

    async def run(self, space: str, pipeline: str, task: str, member: str) -> str:
        """Run a task on a member, or wait for the run that goes on there; return why it failed, empty: it has not.

        Cancelling this does not cancel the run, which is taken up again by the next call.
        """
        inventory = self._loop.inventory
        run = task_run_objects.unfinished(inventory, space, pipeline, task, member)
        if run is None:
            owner = inventory.find("Pipeline", space, pipeline)
            if owner is None:
                return f"Pipeline {pipeline} was deleted"
            made = task_run_objects.made(owner, task, member, secrets.token_hex(4))
            try:
                await self._executor.execute(Plan([Create(made)]))
            except ClusterError as error:
                return f"its TaskRun could not be created: {error}"
            run = inventory.get(reference(made))
            if run is None:
                return f"its TaskRun could not be created: {reference(made).name} exists already"
            self._loop.queue.add(reference(run))
        return await self._ended(run)

    def look(self, ref: Reference) -> None:
        """Tell those who wait for a run when it has ended, or does not exist any more."""
        run = self._loop.inventory.get(ref)
        if run is not None and not task_run_members.finished(run):
            return
        for waiting in self._waiting.pop(ref, ()):
            if not waiting.done():
                waiting.set_result(_GONE if run is None else _failure(run))

    async def _ended(self, run: Object) -> str:
        ref = reference(run)
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ref, []).append(waiting)
        present = self._loop.inventory.get(ref)
        if present is None or uid(present) != uid(run) or task_run_members.finished(present):
            self.look(ref)
        try:
            return await waiting
        finally:
            left = [other for other in self._waiting.get(ref, ()) if other is not waiting]
            if left:
                self._waiting[ref] = left
            else:
                self._waiting.pop(ref, None)


def _failure(run: Object) -> str:
    if conditions.holds(run, task_run_members.SUCCEEDED):
        return ""
    known = conditions.find(run, task_run_members.SUCCEEDED) or {}
    return f"TaskRun {reference(run).name} is {known.get('reason')}: {known.get('message')}"
