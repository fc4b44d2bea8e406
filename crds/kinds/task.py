# SPDX-License-Identifier: BSD-2-Clause
"""Task: a program that runs in a sandbox."""

from __future__ import annotations

from crds import condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import VARIABLE, distinct, items, name, number, record, rule, text, word

_CONDUITS = 256

# The field stays, and stays a list. Tasks that are stored with it can then be read and mended, and their status can be
# written: the API server applies nothing to an object that has a field of another type than the schema's.
_NO_PATHS = rule(
    "false",
    "a task no longer chooses the paths of its runtime; write spec.runtimeName, the name of a runtime, in its place; "
    "the owner of the pool gives the runtime's paths, in spec.runtimes of the JailPool",
)

TASK = Resource(
    kind="Task",
    plural="tasks",
    short="shtask",
    about="A program that runs in a sandbox, its expected accesses, and the taint of its output. "
    "Pipelines name the tasks that they run.",
    spec=record(
        "The program and its sandbox.",
        {
            "command": items(
                "The program, as an absolute path, and its arguments. $(NAME) is replaced.",
                text("The program or an argument.", longest=32768),
                most=256,
                least=1,
            ),
            "runtimeName": name(
                "The runtime: what the program may execute and read beside its conduits (itself, its interpreter, its "
                "libraries). The owner of the pool gives it, in spec.runtimes of the JailPool. Left out: none, with "
                "which only a pipeline in mode baseline can start the task."
            ),
            "runtime": items(
                "Refused: the paths with which a Task once chose its runtime. Use runtimeName.",
                text("An absolute path.", longest=shared.PATH_LENGTH),
                most=64,
                rules=(_NO_PATHS,),
            ),
            "environment": shared.variables(
                "The program's environment, besides the variables that the monitor sets. $(NAME) is replaced."
            ),
            "run": word(
                "Once: a program that ends. Always: a program that is restarted when it ends.",
                "Once",
                "Always",
                default="Always",
            ),
            "parameters": distinct(
                "Parameters, which give one task many instances, such as a worker for each user and region.",
                text("Name of a parameter.", longest=64, pattern=VARIABLE),
                most=8,
            ),
            "taint": shared.policy_reference(
                "The policy of everything that the task writes, whatever it has really read."
            ),
            "reads": distinct(
                "Names of the pipeline's conduits that the task is expected to read. A mistake costs speed, never "
                "safety.",
                name("Name of a conduit."),
                most=_CONDUITS,
            ),
            "writes": distinct(
                "Names of the pipeline's conduits that the task is expected to write. A mistake costs speed, never "
                "safety.",
                name("Name of a conduit."),
                most=_CONDUITS,
            ),
            "raisesTo": distinct(
                "Names of the pipeline's tasks as which the running program may register again (see shai_register), if "
                "their taint is at least as restrictive. Those tasks are not started by themselves. Neither has "
                "parameters.",
                name("Name of a Task."),
                most=16,
            ),
            "resources": record(
                "The limits for each of its processes, and for the task as a whole; a limit that is left out does not "
                "apply.",
                {
                    "memoryMegabytes": number(
                        "Private writable memory (heap, stacks, copies), in megabytes of 1,048,576 bytes.",
                        least=16,
                        most=1048576,
                    ),
                    "openFiles": number(
                        "Open file descriptors, the 160 that Shai reserves among them.", least=256, most=1048576
                    ),
                    "processes": number(
                        "Processes and threads of the whole task. Default: 1,024. On Linux; a task for which it is "
                        "given does not start where Shai cannot limit them.",
                        least=64,
                        most=1048576,
                    ),
                    "cpuMillicores": number(
                        "Processor time of the whole task, in thousandths of a processor: with 500, it takes half of "
                        "the time of one. On Linux; a task for which it is given does not start where Shai cannot "
                        "limit it.",
                        least=10,
                        most=1048576,
                    ),
                    "totalMemoryMegabytes": number(
                        "Memory of the whole task, with the pages of files that the kernel keeps for it, in megabytes "
                        "of 1,048,576 bytes. The kernel ends the task, or the process that needs more. On Linux; a "
                        "task for which it is given does not start where Shai cannot limit it.",
                        least=64,
                        most=1048576,
                    ),
                },
            ),
        },
        required=("command", "taint"),
    ),
    status={
        "usedBy": items("Pipelines that run this task, by name.", name("Name of a Pipeline."), most=16),
        "usedByTotal": number("The number of pipelines that run it; the list above may be incomplete."),
    },
    conditions={"Ready": condition.validity("Whether it can run.")},
    columns=(
        Column("Run", ".spec.run"),
        Column("Taint", ".spec.taint.name"),
        condition_column("Ready", "Ready"),
        condition_column("Reason", "Ready", "reason"),
        Column("Used-By", ".status.usedByTotal", "integer"),
        condition_column("Message", "Ready", "message", wide=True),
    ),
)
