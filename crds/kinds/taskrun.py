# SPDX-License-Identifier: BSD-2-Clause
"""TaskRun: one run of a task on a member; and how pipelines run their tasks."""

from __future__ import annotations

from crds import condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import Schema, items, moment, name, number, record, rule, switch, text, word

_DAY = 24 * 3600
_ATTEMPTS_LISTED, _REFUSALS_LISTED = 10, 8
_SHORT = 256
_LONGEST_BACKOFF_SECONDS = 3600


def _retries(about: str) -> Schema:
    return record(
        about,
        {
            "limit": number("How often a failed run is repeated.", most=100, default=0),
            "backoffSeconds": number(
                "The time before the first repetition, in seconds; it doubles with each, up to an hour.",
                least=1,
                most=_LONGEST_BACKOFF_SECONDS,
                default=10,
            ),
        },
        default={},
    )


def _timeout() -> Schema:
    return number(
        "The time limit of the run with all its attempts, in seconds from the first one's start. Left out: no limit.",
        least=1,
        most=30 * _DAY,
    )


def _lifetime() -> Schema:
    return number(
        "When the object is deleted, in seconds after the run has ended. Left out: the history limits decide.",
        most=365 * _DAY,
    )


def task_runs() -> Schema:
    """Describe how a pipeline's tasks are run, and which TaskRuns are kept."""
    return record(
        "How the operator runs tasks with run: Once, and how many of its TaskRuns it keeps.",
        {
            "retries": _retries(
                "How a failed run is repeated. When its retries are used up, the member is not ready, and the next run "
                "starts after a growing delay."
            ),
            "timeoutSeconds": _timeout(),
            "successfulRunsHistoryLimit": number(
                "The number of successful TaskRuns to keep, of each task on each member.", most=100, default=3
            ),
            "failedRunsHistoryLimit": number(
                "The number of other finished TaskRuns to keep, of each task on each member.", most=100, default=1
            ),
            "ttlSecondsAfterFinished": _lifetime(),
        },
        default={},
    )


_FIXED = ("pipeline", "task", "member", "retries", "timeoutSeconds", "ttlSecondsAfterFinished", "trigger")


def _unchanged(field: str) -> str:
    return f"(has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field}))"


_EXIT = {
    "exitCode": number("The program's exit status.", most=255),
    "signal": text("The signal that killed the program, such as SIGKILL.", longest=32),
}

_ATTEMPT = record(
    "One attempt.",
    {
        "number": number("Counted from 1."),
        "startTime": moment("When it started, or was about to start."),
        "completionTime": moment("When it ended; left out while it goes on."),
        **_EXIT,
        "reason": word(
            "How it ended. Interrupted: the monitor ended, and with it the task. Stopped: somebody stopped the task, "
            "or the pipeline no longer has it. Lost: the member was removed.",
            "Succeeded",
            "Failed",
            "Interrupted",
            "Stopped",
            "Lost",
        ),
        "message": text("How it ended, or why the program did not start.", longest=1024, shortest=0),
        "restarts": number("How often the monitor started the program again, because of another bundle."),
        "monitorStarted": text("When the monitor started that was asked for it.", longest=64),
    },
    required=("number",),
)

_REFUSAL = record(
    "A kind of access that was denied. It names no document: what a program asks for may tell what it has read.",
    {
        "operation": text("read, write, open, or the name of a system call.", longest=_SHORT),
        "conduits": text("Name of the conduits in the pipeline; left out for what belongs to none.", longest=_SHORT),
        "policy": text("The policy that forbids it; left out when none does.", longest=_SHORT),
        "count": number("How often."),
    },
    required=("operation", "count"),
)

TASK_RUN = Resource(
    kind="TaskRun",
    plural="taskruns",
    short="shrun",
    about="One run of a task with run: Once on one member. Created by the operator for each run that a member needs, "
    "or by a user to run the task again.",
    spec=record(
        "The run. Immutable, apart from cancel.",
        {
            "pipeline": name("Name of the Pipeline in this namespace."),
            "task": name("Name of one of the pipeline's tasks, with run: Once."),
            "member": name("The member that runs it. Left out: the first one that is ready."),
            "retries": _retries("How a failed run is repeated."),
            "timeoutSeconds": _timeout(),
            "cancel": switch("true ends the run: its program is stopped with every process.", default=False),
            "ttlSecondsAfterFinished": _lifetime(),
            "trigger": word(
                "Why it was created. BringUp: a member needs it before it serves. Manual: by a user.",
                "BringUp",
                "Manual",
                default="Manual",
            ),
        },
        required=("pipeline", "task"),
        rules=(
            rule(
                " && ".join(map(_unchanged, _FIXED)),
                "cannot change, apart from cancel: make another run",
            ),
            rule("!oldSelf.cancel || self.cancel", "a cancelled run does not go on: make another run"),
        ),
    ),
    status={
        "startTime": moment("When the first attempt started."),
        "completionTime": moment("When the run ended."),
        "member": text("The member that runs it.", longest=63),
        "instance": text("The instance of the task; without parameters it has the task's name.", longest=1024),
        **_EXIT,
        "retries": number("How many attempts there were after the first."),
        "attempts": items("The last attempts, oldest first.", _ATTEMPT, most=_ATTEMPTS_LISTED),
        "denials": number("The number of accesses that were denied in the last attempt."),
        "refusals": items("The first kinds of accesses that were denied in it.", _REFUSAL, most=_REFUSALS_LISTED),
    },
    conditions={
        "Succeeded": condition.run(
            false=("NotOnce", "Interrupted", "Stopped", "MemberGone"), unknown=("Queued", "Retrying", "Stopping")
        )
    },
    columns=(
        Column("Pipeline", ".spec.pipeline"),
        Column("Task", ".spec.task"),
        Column("Member", ".status.member"),
        condition_column("Reason", "Succeeded", "reason"),
        Column("Exit", ".status.exitCode", "integer"),
        Column("Denials", ".status.denials", "integer"),
        condition_column("Succeeded", "Succeeded", wide=True),
        Column("Retries", ".status.retries", "integer", wide=True),
        Column("Trigger", ".spec.trigger", wide=True),
        Column("Started", ".status.startTime", "date", wide=True),
        Column("Ended", ".status.completionTime", "date", wide=True),
        condition_column("Message", "Succeeded", "message", wide=True),
    ),
    selectable=(".spec.pipeline", ".spec.task", ".spec.trigger"),
)

_WAIT = record(
    "A task whose end another one waits for.",
    {
        "task": name("The task that writes."),
        "conduit": name("The conduit that it writes, and the other one reads."),
    },
    required=("task", "conduit"),
)


def graph() -> Schema:
    """Describe the order in which a pipeline's tasks start."""
    node = record(
        "A task, and what it waits for.",
        {
            "task": name("The task."),
            "waitsFor": items("The tasks with run: Once that end before it starts.", _WAIT, most=shared.WAITS_LIMIT),
            "cycle": items(
                "Tasks that would have to wait for one another, this one among them; none of them waits for another.",
                name("A task."),
                most=64,
            ),
        },
        required=("task",),
    )
    return items(
        "The order in which tasks start, as their reads and writes say. Tasks that wait for nothing start side by "
        "side.",
        node,
        most=64,
    )
