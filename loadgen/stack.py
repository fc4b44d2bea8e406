# SPDX-License-Identifier: BSD-2-Clause
"""Stacks: the example pipeline or a variant of it, each under a monitor of its own.

Two monitors on one corpus register its files in the same order, so that conduits have the
same numbers everywhere and all stacks serve from the index that the first one's indexer
wrote.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent.socket

from loadgen import manifests, stores
from loadgen.measurement import MeasurementError
from loadgen.monitor import Monitor
from loadgen.workspace import cores

if TYPE_CHECKING:
    import subprocess

    from loadgen.supervisor import Supervisor
    from loadgen.workspace import Workspace

SERVING = ("search-back", "search", "worker")
"""Tasks that serve searches, in the order in which they start."""

_START_SECONDS = 30.0
_READY_SECONDS = 60.0


@dataclass(frozen=True)
class Variant:
    """A way to run the example pipeline; ``offset`` is added to its port."""

    name: str
    mode: str
    offset: int
    fault: str = manifests.NO_FAULT


CONFINED = Variant("confined", "shai", 0)
BASELINE = Variant("baseline", "baseline", 1)
BROKEN = Variant("broken", "shai", 2, fault="ignore-attributes")
BROKEN_BASELINE = Variant("broken-baseline", "baseline", 3, fault="ignore-attributes")
VARIANTS = (CONFINED, BASELINE, BROKEN, BROKEN_BASELINE)


@dataclass
class Stack:
    """A monitor with its key-value store and one pipeline, as the measurement uses them."""

    monitor: Monitor
    pipeline: str
    address: tuple[str, int]
    mode: str
    services: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    """The store's and the monitor's process, by name, in the order of their start."""

    @property
    def host(self) -> str:
        """The address as a URL."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def analyse(self) -> dict[str, Any]:
        """Run the offline analysis and return what it found."""
        found: dict[str, Any] = self.monitor.call("analyze", "--pipeline", self.pipeline)
        return found

    def serve(self) -> None:
        """Start everything that serves searches and wait until it does."""
        for task in SERVING:
            self.monitor.call("task", "start", self.pipeline, task, "--wait")
        deadline = time.monotonic() + _READY_SECONDS
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

    def stop(self, supervisor: Supervisor) -> None:
        """End the monitor, which ends its tasks, and the store."""
        for process in reversed(self.services.values()):
            supervisor.end(process)

    def enter(self, mode: str) -> None:
        """Switch to ``mode`` for the sessions that begin from now on."""
        if mode != self.mode:
            self.monitor.call("pipeline", "mode", self.pipeline, mode)
            self.mode = mode

    def interceptions(self) -> dict[str, int]:
        """Count how often the pipeline involved the monitor, by kind."""
        return self.monitor.interceptions(self.pipeline)

    def tasks(self) -> list[int]:
        """List the process ids of the running tasks."""
        return self.monitor.task_pids(self.pipeline)

    def shared(self) -> list[int]:
        """List the process ids of what serves the tasks: the store and the monitor."""
        return [process.pid for process in self.services.values()]


class Launcher:
    """Starts stacks. ``port`` replaces the example's; variants listen on the next ones."""

    def __init__(self, place: Workspace, java: tuple[Path, Path], port: int | None) -> None:
        self._place = place
        self._java, self._java_home = java
        self._example = manifests.read_pipeline(place.examples / "pipeline.yaml")
        self._host, usual = manifests.listening_address(self._example)
        self._port = port or usual
        self._moved = self._port != usual
        self.pipeline: str = self._example["metadata"]["name"]

    def address(self, variant: Variant) -> tuple[str, int]:
        """Return where a variant listens."""
        return self._host, self._port + variant.offset

    def launch(self, variant: Variant, supervisor: Supervisor, run_directory: Path) -> Stack:
        """Start a store and a monitor, and apply the manifests; no task runs yet."""
        monitor = Monitor(self._place.shai, run_directory / f"{variant.name}.sock")
        stack = Stack(monitor, self.pipeline, self.address(variant), variant.mode)
        directory = run_directory / variant.name
        directory.mkdir()
        options = []
        if variant.mode == "baseline":
            store = stores.open_store(directory)
        else:
            files = monitor.call("keyvalue", "configure", "--directory", str(directory))
            store = stores.confined_store(files, Path(files["secrets"]).read_text())
            options = ["--secrets", files["secrets"]]
        self._start_store(stack, store, variant, supervisor)
        self._start_monitor(stack, [*options, f"--define=REDIS_SOCKET={store.socket}"], variant, supervisor)
        monitor.call("apply", "-f", str(self.manifests(variant)))
        return stack

    def manifests(self, variant: Variant) -> Path:
        """Return the directory with a variant's manifests, derived from the example unless they are the same."""
        if variant == CONFINED and not self._moved:
            return self._place.examples
        directory = self._place.manifests / variant.name
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self._place.examples, directory)
        host, port = self.address(variant)
        pipeline = manifests.derive(self._example, mode=variant.mode, listen=f"{host}:{port}", fault=variant.fault)
        manifests.write(directory / "pipeline.yaml", pipeline)
        return directory

    def _start_store(self, stack: Stack, store: stores.Store, variant: Variant, supervisor: Supervisor) -> None:
        name = f"{store.name} ({variant.name})"
        log = self._place.logs / f"store-{variant.name}.log"
        process = supervisor.start(name, store.command, log)
        supervisor.wait_until(store.socket.exists, process, name, log, _START_SECONDS)
        stores.load_profiles(store, self._place.data / "profiles.jsonl")
        stack.services[name] = process

    def _start_monitor(self, stack: Stack, options: list[str], variant: Variant, supervisor: Supervisor) -> None:
        name = f"monitor ({variant.name})"
        log = self._place.logs / f"monitor-{variant.name}.log"
        keys = self._place.data / "facts" / "population.jsonl"
        defines = {"JAVA": self._java, "JAVA_HOME": self._java_home, "SYSE": self._place.syse, "KEYS": keys}
        command: list[str | Path] = [
            self._place.shai, "monitor", "--data", self._place.data, "--state", self._place.state / variant.name,
            "--socket", stack.monitor.socket, "--cpus", ",".join(map(str, sorted(cores()[0]))), *options,
            *(f"--define={key}={value}" for key, value in defines.items()),
        ]  # fmt: skip
        process = supervisor.start(name, command, log)
        supervisor.wait_until(stack.monitor.is_ready, process, name, log, _START_SECONDS)
        stack.services[name] = process


def _healthy(address: tuple[str, int]) -> bool:
    with gevent.socket.create_connection(address, timeout=5.0) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        return bytes(connection.recv(64)).startswith(b"HTTP/1.1 200")
