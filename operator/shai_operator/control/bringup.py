# SPDX-License-Identifier: BSD-2-Clause
"""Starts the tasks and analyses of a member's bundle: tasks that end, the analysis, tasks that keep running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.monitors.errors import MonitorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shai_operator.monitors.client import MonitorClient
    from shai_operator.reconcile.members import Monitor, PipelineTasks

SUCCEEDED, RUNNING = "Succeeded", "Running"


class BringUpError(Exception):
    """A task or an analysis of a pipeline did not start.

    ``reason`` is TaskFailed or AnalysisFailed. ``confidential``: the message is not for authors of pipelines.
    """

    def __init__(self, reason: str, message: str, *, confidential: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.confidential = confidential


async def bring_up(
    client: MonitorClient, monitor: Monitor, pipelines: Sequence[PipelineTasks], tell: Callable[[str], None]
) -> None:
    """Start everything that does not run, in order; BringUpError when something does not start."""
    states = monitor.tasks or {}
    for pipeline in pipelines:
        for task in pipeline.once:
            if states.get((pipeline.pipeline, task)) != SUCCEEDED:
                tell(f"running task {pipeline.pipeline}/{task} to its end")
                await _run(client, pipeline.pipeline, task, SUCCEEDED)
        if pipeline.pipeline not in monitor.analyzed:
            tell(f"analysing {pipeline.pipeline}")
            await _analyze(client, pipeline.pipeline)
        for task in pipeline.always:
            if states.get((pipeline.pipeline, task)) != RUNNING:
                tell(f"starting task {pipeline.pipeline}/{task}")
                await _run(client, pipeline.pipeline, task, RUNNING)


async def _run(client: MonitorClient, pipeline: str, task: str, wanted: str) -> None:
    try:
        await client.task(pipeline, task, "start")
        state = await client.task(pipeline, task, "wait")
    except MonitorError as error:
        raise BringUpError("TaskFailed", str(error), confidential=error.unavailable) from error
    if state["state"] != wanted:
        text = f"task {pipeline}/{task} is {state['state']}: {state['message'] or 'it said nothing'}"
        raise BringUpError("TaskFailed", f"{text}; see its log on the member")


async def _analyze(client: MonitorClient, pipeline: str) -> None:
    def ignore(_: Mapping[str, object]) -> None: ...

    try:
        await client.analyze(pipeline, "All", full=False, progress=ignore)
    except MonitorError as error:
        raise BringUpError("AnalysisFailed", str(error), confidential=error.unavailable) from error
