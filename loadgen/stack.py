# SPDX-License-Identifier: BSD-2-Clause
"""Pipelines of the demo: the confined one and its variants, derived from the same manifest."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import gevent.socket

from loadgen import manifests
from loadgen.measurement import MeasurementError

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.monitor import Monitor

SERVING = ("search-back", "search", "worker")
"""Tasks that serve searches, in the order in which they start."""

_READY_SECONDS = 60.0


@dataclass
class PipelineStack:
    """One pipeline of the running monitor, as the measurement uses it."""

    monitor: Monitor
    name: str
    address: tuple[str, int]
    mode: str

    @property
    def host(self) -> str:
        """The address as a URL."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def start(self) -> None:
        """Start everything that serves searches and wait until it does."""
        for task in SERVING:
            self.monitor.call("task", "start", self.name, task)
        self._await()

    def stop(self) -> None:
        """Stop what `start` started, in reverse order."""
        for task in reversed(SERVING):
            self.monitor.call("task", "stop", self.name, task)

    def enter(self, mode: str) -> None:
        """Switch to ``mode`` for the sessions that begin from now on."""
        if mode != self.mode:
            self.monitor.call("pipeline", "mode", self.name, mode)
            self.mode = mode

    def interceptions(self) -> dict[str, int]:
        """Count how often the pipeline involved the monitor, by kind."""
        return self.monitor.interceptions(self.name)

    def tasks(self) -> list[int]:
        """List the process ids of the running tasks."""
        return self.monitor.task_pids(self.name)

    def _await(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                if _healthy(self.address):
                    return
                cause = "it accepts connections but does not answer"
            except OSError as error:
                cause = str(error)
            if time.monotonic() > deadline:
                raise MeasurementError(f"pipeline {self.name} does not answer at {self.host}: {cause}")
            time.sleep(0.2)


def _healthy(address: tuple[str, int]) -> bool:
    with gevent.socket.create_connection(address, timeout=5.0) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        return bytes(connection.recv(64)).startswith(b"HTTP/1.1 200")


@dataclass(frozen=True)
class Variant:
    """A pipeline that the demo derives from the example; ``offset`` is added to its port."""

    name: str
    mode: str
    offset: int
    fault: str = manifests.NO_FAULT


BASELINE = Variant("syse-baseline", "baseline", 1)
BROKEN = Variant("syse-broken", "shai", 2, fault="ignore-attributes")
BROKEN_BASELINE = Variant("syse-broken-baseline", "baseline", 3, fault="ignore-attributes")
VARIANTS = (BASELINE, BROKEN, BROKEN_BASELINE)


class Family:
    """The example pipeline and its variants at the ports from ``port`` on."""

    def __init__(self, example: Path, port: int | None) -> None:
        self._example = manifests.read_pipeline(example)
        self._host, usual = manifests.listening_address(self._example)
        self._port = port or usual
        self._moved = self._port != usual
        self.name: str = self._example["metadata"]["name"]

    def addresses(self) -> list[tuple[str, int]]:
        """List where the pipelines listen."""
        return [(self._host, self._port + offset) for offset in (0, *(variant.offset for variant in VARIANTS))]

    def write(self, directory: Path, open_store: Path) -> None:
        """Write the variants' manifests, and the example's own when it has to move to another port.

        Mode baseline has no monitor that could open the confined store to it: ``open_store``
        is the socket of the one that it uses.
        """
        for path in directory.glob("*.yaml"):
            path.unlink()
        for variant in VARIANTS:
            pipeline = manifests.derive(
                self._example,
                variant.name,
                mode=variant.mode,
                port=self._port + variant.offset,
                fault=variant.fault,
                without=frozenset({"indexer"}),  # they serve from the index that the example's indexer wrote
            )
            if variant.mode == "baseline":
                pipeline["spec"]["keyValue"] = {"socket": str(open_store)}
            manifests.write(directory / f"{variant.name}.yaml", pipeline)
        if self._moved:
            moved = manifests.derive(self._example, self.name, mode=self._example["spec"]["mode"], port=self._port)
            manifests.write(directory / f"{self.name}.yaml", moved)

    def example(self, monitor: Monitor) -> PipelineStack:
        """Return the example pipeline."""
        return PipelineStack(monitor, self.name, (self._host, self._port), self._example["spec"]["mode"])

    def variant(self, monitor: Monitor, variant: Variant) -> PipelineStack:
        """Return one of its variants."""
        return PipelineStack(monitor, variant.name, (self._host, self._port + variant.offset), variant.mode)
