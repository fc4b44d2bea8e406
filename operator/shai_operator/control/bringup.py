# SPDX-License-Identifier: BSD-2-Clause
"""Starts the tasks and analyses of a member's bundle: tasks that end, the analysis, tasks that keep running."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shai_operator.monitors.errors import MonitorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shai_operator.monitors.client import MonitorClient
    from shai_operator.reconcile.members import Monitor, PipelineTasks

SUCCEEDED, RUNNING = "Succeeded", "Running"
AT_ONCE = 4
"""Tasks that a member runs to their end at the same time."""


class BringUpError(Exception):
    """A task or an analysis of a pipeline did not start.

    ``reason`` is TaskFailed or AnalysisFailed. ``confidential``: the message is not for authors of pipelines.
    """

    def __init__(self, reason: str, message: str, *, confidential: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.confidential = confidential


class Runner(Protocol):
    """Runs tasks to their end; implemented by `shai_operator.control.task_runner.TaskRunner`."""

    def unfinished(self, space: str, pipeline: str, task: str, member: str) -> bool:
        """Whether a run of the task goes on on a member, or waits there."""

    async def run(self, space: str, pipeline: str, task: str, member: str) -> str:
        """Run a task on a member; return why it failed, empty: it has not."""


@dataclass(frozen=True)
class BringUp:
    """The bring-up of one member."""

    member: str
    client: MonitorClient
    monitor: Monitor
    runner: Runner
    tell: Callable[[str], None]

    async def run(self, pipelines: Sequence[PipelineTasks]) -> None:
        """Start everything that does not run, in order; BringUpError when something does not start."""
        for pipeline in pipelines:
            await self._once(pipeline)
            if pipeline.pipeline not in self.monitor.analyzed:
                self.tell(f"analysing {pipeline.pipeline}")
                await self._analyze(pipeline.pipeline)
            for task in pipeline.always:
                if self._state(pipeline, task) != RUNNING:
                    self.tell(f"starting task {pipeline.pipeline}/{task}")
                    await self._start(pipeline.pipeline, task)

    def _state(self, pipeline: PipelineTasks, task: str) -> str:
        return (self.monitor.tasks or {}).get((pipeline.pipeline, task), "")

    async def _once(self, pipeline: PipelineTasks) -> None:
        """Run the tasks that end: each when those that it waits for have ended."""
        due = [task for task in pipeline.once if self._state(pipeline, task) != SUCCEEDED]
        ended = {task: asyncio.Event() for task in due}
        places = asyncio.Semaphore(AT_ONCE)

        async def run(task: str) -> None:
            for other in sorted(pipeline.after.get(task, ())):
                if other in ended:
                    await ended[other].wait()
            async with places:
                self.tell(f"running task {pipeline.pipeline}/{task} to its end")
                await self._run(pipeline, task)
            ended[task].set()

        try:
            async with asyncio.TaskGroup() as running:
                for task in due:
                    running.create_task(run(task))
        except* BringUpError as failures:
            raise failures.exceptions[0] from None

    async def _run(self, pipeline: PipelineTasks, task: str) -> None:
        place = pipeline.namespace, pipeline.pipeline, task, self.member
        if self._state(pipeline, task) == RUNNING and not self.runner.unfinished(*place):
            # Somebody has started it on the member.
            state = await self._ask(pipeline.pipeline, task, "wait")
            if state["state"] == SUCCEEDED:
                return
        why = await self.runner.run(*place)
        if why:
            raise BringUpError("TaskFailed", f"task {pipeline.pipeline}/{task} did not succeed: {why}")

    async def _start(self, pipeline: str, task: str) -> None:
        await self._ask(pipeline, task, "start")
        state = await self._ask(pipeline, task, "wait")
        if state["state"] != RUNNING:
            text = f"task {pipeline}/{task} is {state['state']}: {state['message'] or 'it said nothing'}"
            raise BringUpError("TaskFailed", f"{text}; see its log on the member")

    async def _ask(self, pipeline: str, task: str, verb: str) -> Mapping[str, str]:
        try:
            return await self.client.task(pipeline, task, verb)
        except MonitorError as error:
            raise BringUpError("TaskFailed", str(error), confidential=error.unavailable) from error

    async def _analyze(self, pipeline: str) -> None:
        def ignore(_: Mapping[str, object]) -> None: ...

        try:
            await self.client.analyze(pipeline, "All", full=False, progress=ignore)
        except MonitorError as error:
            raise BringUpError("AnalysisFailed", str(error), confidential=error.unavailable) from error
