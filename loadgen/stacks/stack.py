# SPDX-License-Identifier: BSD-2-Clause
"""A running pipeline under its monitor, in the form that the measurement needs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import gevent.socket

from loadgen.driving.protocol import SIGNED, FrontEnd
from loadgen.errors import PublicError
from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.stacks.monitor import Monitor

SERVING = ("search-back", "search", "worker")
"""The tasks of Sys-E that serve searches, in the order in which they start."""

SUPERVISOR = "supervisor"
"""The processes between the monitor and the tasks, in `Stack.cpu`."""

_READY_SECONDS = 60.0


class StackError(PublicError):
    """A stack does not serve, or has the wrong mode; the text names the pipeline."""


@dataclass
class Stack:
    """A monitor with its key-value store and one pipeline, in the form that the measurement needs."""

    monitor: Monitor
    pipeline: str
    address: tuple[str, int]
    mode: str
    services: list[int] = field(default_factory=list)
    """Process ids of the store and the monitor."""
    serving: tuple[str, ...] = SERVING
    """The tasks that serve, in the order in which they start."""
    service: str = ""
    """Where users dial the front end, if not at its address."""
    signed: str = SIGNED
    """What a login signs, as in `FrontEnd`."""
    beside: Mapping[str, FrontEnd] = field(default_factory=dict)
    """The front ends of the other tasks that serve users, by task."""

    @property
    def front_end(self) -> FrontEnd:
        """The front end as its users know it."""
        return FrontEnd.dialled(self.address, self.pipeline, self.service, self.signed)

    def analyze(self) -> None:
        """Run the offline analysis."""
        self.monitor.call("analyze", "--pipeline", self.pipeline)

    def serve(self) -> None:
        """Start all tasks that serve, and wait until their front ends answer."""
        for task in self.serving:
            self.monitor.call("task", "start", self.pipeline, task, "--wait")
        self.await_service()

    def serve_beside(self, task: str) -> FrontEnd:
        """Start one of the other tasks that serve users, and wait until it answers; return its front end."""
        self.monitor.call("task", "start", self.pipeline, task, "--wait")
        self._await(self.beside[task], _READY_SECONDS)
        return self.beside[task]

    def await_service(self, seconds: float = _READY_SECONDS) -> None:
        """Wait until the front ends of all tasks that serve answer; StackError when one does not."""
        for found in (self.front_end, *(end for task, end in self.beside.items() if task in self.serving)):
            self._await(found, seconds)

    def _await(self, front_end: FrontEnd, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if _healthy(front_end.address):
                    return
                cause = "it accepts connections but does not answer"
            except OSError as error:
                cause = str(error)
            if time.monotonic() > deadline:
                raise StackError(f"pipeline {self.pipeline} does not answer at {front_end.url}: {cause}")
            time.sleep(0.2)

    def enter(self, mode: str) -> bool:
        """Switch to ``mode``, which holds for sessions that start from now on; return whether it was another one."""
        if mode == self.mode:
            return False
        self.monitor.call("pipeline", "mode", self.pipeline, mode)
        self.mode = mode
        return True

    def put_back(self, mode: str) -> None:
        """Restore ``mode``, even if another process has switched it in the meantime."""
        self.mode = self.monitor.pipeline(self.pipeline)["mode"]
        self.enter(mode)

    def check(self) -> None:
        """Raise StackError when another process has switched the mode."""
        found = self.monitor.pipeline(self.pipeline)["mode"]
        if found != self.mode:
            raise StackError(
                f"pipeline {self.pipeline} was switched from mode {self.mode} to {found} while it was measured; "
                "leave it alone until the measurement is done"
            )

    def interceptions(self) -> dict[str, int]:
        """Return the number of the monitor's interceptions for the pipeline, by kind."""
        return self.monitor.interceptions(self.pipeline)

    def tasks(self) -> dict[str, int]:
        """Return the process ids of the running tasks by name."""
        return self.monitor.tasks(self.pipeline)

    def message(self, task: str) -> str | None:
        """Return what the monitor says of a running task, such as why its workers are not rolled back."""
        tasks = self.monitor.pipeline(self.pipeline)["tasks"]
        return next((entry.get("message") or None for entry in tasks if entry["name"] == task), None)

    def cpu(self, tasks: Mapping[str, int]) -> dict[str, int]:
        """Return the CPU time so far in nanoseconds: of each of ``tasks`` with its workers, and of what serves them.

        What serves them are ``supervisor``, ``monitor`` and ``store``. Workers that have ended are counted.
        """
        found = {SUPERVISOR: 0}
        for name, pid in tasks.items():
            found[name], supervising = processes.task_nanoseconds(pid, self.services)
            found[SUPERVISOR] += supervising
        for name, pids in self._named_services(tasks).items():
            found[name] = sum(map(processes.cpu_nanoseconds, pids))
        return found

    def members(self, tasks: Mapping[str, int]) -> dict[str, set[int]]:
        """Return the live processes that `cpu` tells apart."""
        found: dict[str, set[int]] = {SUPERVISOR: set()}
        for name, pid in tasks.items():
            supervisor = processes.supervisor_of(pid, self.services)
            found[name] = processes.descendants(supervisor or pid) | {pid}
            if supervisor is not None:
                found[SUPERVISOR].add(supervisor)
        return found | self._named_services(tasks)

    def _named_services(self, tasks: Mapping[str, int]) -> dict[str, set[int]]:
        above = {above for pid in tasks.values() for above in processes.ancestors(pid)}
        services = set(self.services)
        return {"monitor": services & above, "store": services - above}

    def processes(self) -> set[int]:
        """List the process ids of all processes of the stack, including workers."""
        found = {*self.services, *self.tasks().values()}
        return found | {below for pid in found for below in processes.descendants(pid)}


def beside(listen: Mapping[str, tuple[str, int]], pipeline: str) -> dict[str, FrontEnd]:
    """Return the front ends of a variant of a pipeline but the first one, from the addresses of its tasks."""
    return {task: FrontEnd.dialled(address, pipeline) for task, address in [*listen.items()][1:]}


def _healthy(address: tuple[str, int]) -> bool:
    with gevent.socket.create_connection(address, timeout=5.0) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        return bytes(connection.recv(64)).startswith(b"HTTP/1.1 200")
