# SPDX-License-Identifier: BSD-2-Clause
"""Stacks on another host, which are reached over the network only.

Their twins were installed beside the member before; here they get the pipeline. Monitors count CPU time, because the
processes of another host cannot be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.stacks import manifests, ports
from loadgen.stacks.launcher import TWINS
from loadgen.stacks.monitor import Monitor, Server
from loadgen.stacks.stack import SUPERVISOR, Stack, StackError, beside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

MONITOR = "monitor"
_OF_TASKS, _OF_MONITOR = "shai_cpu_seconds", "process_cpu_seconds"
_NANO = 1e9
NOTES = (
    (
        "The member is on another host: the load came over the network, and nothing was kept on cores of its own. "
        "Its tasks and monitor share the host's cores with whatever else runs there."
    ),
    (
        "CPU time is what the monitors count: of tasks, supervisors and the monitor. That of the key-value store "
        "is not in it, in no mode."
    ),
)
"""What a measurement of another host cannot do."""


@dataclass
class RemoteStack(Stack):
    """A stack on another host."""

    def cpu(self, tasks: Mapping[str, int]) -> dict[str, int]:
        """Return the CPU time so far in nanoseconds: of each of ``tasks``, their supervisors, and the monitor."""
        found = dict.fromkeys([SUPERVISOR, *tasks, MONITOR], 0.0)
        seen = set()
        for sample in self.monitor.samples(_OF_TASKS, _OF_MONITOR):
            labels = sample.labels
            if not labels or labels.get("pipeline") == self.pipeline:
                seen.add(sample.name.removesuffix("_total"))
                name = labels.get("task", MONITOR) if labels.get("part") != "supervisor" else SUPERVISOR
                found[name] = found.get(name, 0.0) + sample.value
        if seen != {_OF_TASKS, _OF_MONITOR}:
            raise StackError(
                f"the monitor at {self.monitor.name} does not count the CPU time of pipeline {self.pipeline}: "
                "its image is older than this load generator"
            )
        return {name: math.floor(seconds * _NANO) for name, seconds in found.items()}

    def processes(self) -> set[int]:
        """Return nothing: the processes are on another host."""
        return set()


def twins(
    stack: RemoteStack, documents: Sequence[dict[str, Any]], addresses: Mapping[str, Server], place: Path
) -> Iterator[tuple[str, RemoteStack]]:
    """Give each of the member's twins the pipeline, at ports of its own, and start its tasks."""
    host, port = stack.address
    closed = _closed(host, max([port, *(found.address[1] for found in stack.beside.values())]))
    for variant in TWINS:
        monitor = Monitor(stack.monitor.binary, addresses[variant.name])
        listen = manifests.places(
            manifests.find(documents, stack.pipeline), (host, next(closed)), partial(next, closed)
        )
        bundle = manifests.derive(documents, stack.pipeline, mode=variant.mode, listen=listen, faults=variant.faults)
        monitor.call("apply", "-f", str(manifests.write(place / variant.name, bundle)))
        twin = replace(
            stack,
            monitor=monitor,
            address=next(iter(listen.values())),
            mode=variant.mode,
            service="",
            beside=beside(listen, stack.pipeline),
            serving=manifests.serving(documents, stack.pipeline),
        )
        twin.analyze()
        twin.serve()
        yield variant.name, twin


def _closed(host: str, after: int) -> Iterator[int]:
    while True:
        yield (after := ports.next_closed(host, after))
