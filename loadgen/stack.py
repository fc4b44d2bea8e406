# SPDX-License-Identifier: BSD-2-Clause
"""Stacks: one pipeline under a monitor, one that is up already or one that is launched beside it.

Monitors that begin with the same data register its files in the same order, so that conduits
have the same numbers everywhere and all stacks serve from the index that one of them wrote.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent.socket

from loadgen import manifests, processes, stores
from loadgen.measurement import MeasurementError
from loadgen.monitor import Monitor
from loadgen.plan import BASELINE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    from loadgen.supervisor import Supervisor

SERVING = ("search-back", "search", "worker")
"""Tasks that serve searches, in the order in which they start."""

_START_SECONDS = 30.0
_READY_SECONDS = 60.0


@dataclass
class Stack:
    """A monitor with its key-value store and one pipeline, as the measurement uses them."""

    monitor: Monitor
    pipeline: str
    address: tuple[str, int]
    mode: str
    services: list[int] = field(default_factory=list)
    """Process ids of the store and the monitor."""

    @property
    def host(self) -> str:
        """The address as a URL."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def analyse(self) -> None:
        """Run the offline analysis."""
        self.monitor.call("analyze", "--pipeline", self.pipeline)

    def serve(self) -> None:
        """Start everything that serves searches and wait until it does."""
        for task in SERVING:
            self.monitor.call("task", "start", self.pipeline, task, "--wait")
        self.await_service()

    def await_service(self, seconds: float = _READY_SECONDS) -> None:
        """Wait until the front end answers; MeasurementError when it does not."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if _healthy(self.address):
                    return
                cause = "it accepts connections but does not answer"
            except OSError as error:
                cause = str(error)
            if time.monotonic() > deadline:
                raise MeasurementError(f"pipeline {self.pipeline} does not answer at {self.host}: {cause}")
            time.sleep(0.2)

    def enter(self, mode: str) -> None:
        """Switch to ``mode`` for the sessions that begin from now on."""
        if mode != self.mode:
            self.monitor.call("pipeline", "mode", self.pipeline, mode)
            self.mode = mode

    def put_back(self, mode: str) -> None:
        """Leave it in ``mode``, whoever has switched it meanwhile."""
        self.mode = self.monitor.pipeline(self.pipeline)["mode"]
        self.enter(mode)

    def check(self) -> None:
        """Raise MeasurementError when somebody else has switched the mode."""
        found = self.monitor.pipeline(self.pipeline)["mode"]
        if found != self.mode:
            raise MeasurementError(
                f"pipeline {self.pipeline} was switched from mode {self.mode} to {found} while it was measured; "
                "leave it alone until the measurement is done"
            )

    def interceptions(self) -> dict[str, int]:
        """Count how often the pipeline involved the monitor, by kind."""
        return self.monitor.interceptions(self.pipeline)

    def tasks(self) -> list[int]:
        """List the process ids of the running tasks."""
        return self.monitor.task_pids(self.pipeline)

    def shared(self) -> list[int]:
        """List the process ids of what serves the tasks: the store and the monitor."""
        return self.services

    def processes(self) -> set[int]:
        """List the process ids of all that belongs to it, workers included."""
        tasks = self.tasks()
        return {*self.services, *tasks, *(worker for pid in tasks for worker in processes.descendants(pid))}


@dataclass(frozen=True)
class Variant:
    """A way to run a pipeline."""

    name: str
    mode: str
    fault: str = manifests.NO_FAULT


TWIN = Variant("baseline", BASELINE)
BROKEN = Variant("broken", "shai", fault="ignore-attributes")
BROKEN_BASELINE = Variant("broken-baseline", BASELINE, fault="ignore-attributes")


@dataclass(frozen=True)
class Site:
    """What stacks are launched from."""

    shai: Path
    """The monitor and its command line."""
    data: Path
    """The pipeline's files; the stacks share them."""
    seed: Path | None
    """Commands that are loaded into each stack's key-value store."""
    state: Path
    """Beneath it each stack's monitor keeps its own; on the file system of the data."""
    logs: Path
    sockets: Path
    """Private directory with a path that is short enough for sockets."""
    variables: Mapping[str, str]
    """What the manifests refer to, but for the store's socket."""
    cores: frozenset[int]
    """On which tasks run."""


class Launcher:
    """Launches variants of a pipeline."""

    def __init__(self, site: Site, documents: Sequence[dict[str, Any]], pipeline: str, supervisor: Supervisor) -> None:
        self._site = site
        self._documents = documents
        self._pipeline = pipeline
        self._supervisor = supervisor
        self._running: dict[str, list[subprocess.Popen[str]]] = {}

    def launch(self, variant: Variant, address: tuple[str, int]) -> Stack:
        """Start a store and a monitor, and apply the manifests; no task runs yet."""
        site = self._site
        monitor = Monitor(site.shai, site.sockets / f"{variant.name}.sock")
        stack = Stack(monitor, self._pipeline, address, variant.mode)
        directory = site.sockets / variant.name
        directory.mkdir()
        options = []
        if variant.mode == BASELINE:
            store = stores.open_store(directory)
        else:
            files = monitor.call("keyvalue", "configure", "--directory", str(directory))
            store = stores.confined_store(files, Path(files["secrets"]).read_text())
            options = ["--secrets", files["secrets"]]
        self._start_store(stack, store, variant)
        self._start_monitor(stack, [*options, f"--define=REDIS_SOCKET={store.socket}"], variant)
        bundle = manifests.derive(
            self._documents,
            self._pipeline,
            mode=variant.mode,
            listen=f"{address[0]}:{address[1]}",
            fault=variant.fault,
        )
        monitor.call("apply", "-f", str(manifests.write(site.state / f"{variant.name}.bundle", bundle)))
        return stack

    def end(self, variant: Variant) -> None:
        """End the monitor, which ends its tasks, and the store; remove the monitor's state."""
        self._end(variant.name)

    def end_all(self) -> None:
        """End every stack that was launched and has not been ended."""
        for name in list(self._running):
            self._end(name)

    def _end(self, name: str) -> None:
        for process in reversed(self._running.pop(name, [])):
            self._supervisor.end(process)
        for directory in (self._site.state / name, self._site.sockets / name):
            shutil.rmtree(directory, ignore_errors=True)

    def _start_store(self, stack: Stack, store: stores.Store, variant: Variant) -> None:
        name = f"{store.name} ({variant.name})"
        log = self._site.logs / f"store-{variant.name}.log"
        process = self._start(stack, name, store.command, log, variant)
        self._supervisor.wait_until(store.socket.exists, process, name, log, _START_SECONDS)
        if self._site.seed is not None:
            stores.load(store, self._site.seed)

    def _start_monitor(self, stack: Stack, options: list[str], variant: Variant) -> None:
        site = self._site
        name = f"monitor ({variant.name})"
        log = site.logs / f"monitor-{variant.name}.log"
        state = site.state / variant.name
        shutil.rmtree(state, ignore_errors=True)
        command: list[str | Path] = [
            site.shai, "monitor", "--data", site.data, "--state", state, "--socket", str(stack.monitor.socket),
            "--cpus", ",".join(map(str, sorted(site.cores))), *options,
            *(f"--define={name}={value}" for name, value in site.variables.items()),
        ]  # fmt: skip
        process = self._start(stack, name, command, log, variant)
        self._supervisor.wait_until(stack.monitor.is_ready, process, name, log, _START_SECONDS)

    def _start(
        self, stack: Stack, name: str, command: Sequence[str | Path], log: Path, variant: Variant
    ) -> subprocess.Popen[str]:
        process = self._supervisor.start(name, command, log)
        self._running.setdefault(variant.name, []).append(process)
        stack.services.append(process.pid)
        return process


def _healthy(address: tuple[str, int]) -> bool:
    with gevent.socket.create_connection(address, timeout=5.0) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        return bytes(connection.recv(64)).startswith(b"HTTP/1.1 200")
