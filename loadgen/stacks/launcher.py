# SPDX-License-Identifier: BSD-2-Clause
"""Launches stacks: variants of a pipeline, each with a monitor and a key-value store of its own.

Monitors that start with the same data register its files in the same order. Conduits therefore have the same numbers
everywhere, and all stacks can use the index that one of them wrote.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.plan import BASELINE, CONTROL
from loadgen.stacks import manifests, stores
from loadgen.stacks.monitor import Monitor
from loadgen.stacks.ports import free_port
from loadgen.stacks.stack import SERVING, Stack, beside

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.stacks.supervisor import Supervisor

_START_SECONDS = 30.0


@dataclass(frozen=True)
class Variant:
    """A way to run a pipeline."""

    name: str
    mode: str
    faults: Mapping[str, str] = field(default_factory=dict)
    """Values of the variables by which programs are broken."""
    options: tuple[str, ...] = ()
    """Further options of the front end."""
    monitor: tuple[str, ...] = ()
    """Further options of the monitor."""


TWINS = (Variant(BASELINE, BASELINE), Variant(CONTROL, BASELINE))
"""Two equal stacks, whose difference is the resolution of a measurement."""
FORKED = Variant("forked", BASELINE, options=("--single-session",))
"""A process per session, as under enforcement, without confinement."""
CONFINED = Variant("confined", "shai")
A_PROCESS_EACH = Variant("process", "shai", monitor=("--sessions-per-worker", "1"))
"""A process for each session, which is not rolled back."""
BROKEN = Variant("broken", "shai", faults={"FAULT": "ignore-attributes"})
BROKEN_BASELINE = Variant("broken-baseline", BASELINE, faults={"FAULT": "ignore-attributes"})


@contextlib.contextmanager
def launching(
    site: Site,
    documents: Sequence[dict[str, Any]],
    pipeline: str,
    supervisor: Supervisor,
    serving: Sequence[str] = SERVING,
) -> Iterator[Launcher]:
    """Yield a launcher; all stacks that it has launched are ended at the end."""
    site.logs.mkdir(parents=True, exist_ok=True)
    # Others can search but not list the sockets' directory. Its path is short, since paths of sockets are limited and
    # the data's may already be as long as the limit allows, and nobody can guess it.
    sockets = Path(tempfile.mkdtemp(prefix="shai-"))
    sockets.chmod(0o711)
    launcher = Launcher(site, documents, pipeline, supervisor, sockets=sockets, serving=serving)
    try:
        yield launcher
    finally:
        with supervisor.undisturbed():
            launcher.end_all()
            shutil.rmtree(sockets, ignore_errors=True)


@dataclass(frozen=True)
class Site:
    """The files and settings from which stacks are launched."""

    shai: Path
    """The program of the monitor and of the commands."""
    data: Path
    """The pipeline's files; the stacks share them."""
    seed: Path | None
    """Commands that each stack's key-value store runs when it starts."""
    state: Path
    """The directory for the monitors' states, on the file system of the data."""
    logs: Path
    variables: Mapping[str, str]
    """The variables of the manifests, without the store's socket."""
    runtimes: Mapping[str, Sequence[str]]
    """What tasks may execute and read beside their conduits: paths, which may have variables, by name."""
    cores: frozenset[int]
    """The cores on which tasks run."""
    sources: tuple[str, ...] = ()
    """What the monitors may fetch facts from, beside their own stores."""


class Launcher:
    """Launches variants of a pipeline; made by `launching`."""

    def __init__(
        self,
        site: Site,
        documents: Sequence[dict[str, Any]],
        pipeline: str,
        supervisor: Supervisor,
        *,
        sockets: Path,
        serving: Sequence[str],
    ) -> None:
        self.serving = tuple(serving)
        """The tasks that are started, in their order."""
        self._sockets = sockets
        self._site = site
        self._documents = documents
        self._pipeline = pipeline
        self._supervisor = supervisor
        self._running: dict[str, list[subprocess.Popen[str]]] = {}

    def launch(self, variant: Variant, address: tuple[str, int]) -> Stack:
        """Start a store and a monitor, and apply the manifests; no task runs yet.

        ``address`` is that of the search service. Other tasks that serve users get ports of their own beside it.
        """
        directory = self._sockets / variant.name
        directory.mkdir(mode=0o700)
        options = []
        if variant.mode == BASELINE:
            directory.chmod(0o711)  # tasks run as other users and connect themselves
            store = stores.open_store(directory)
        else:
            files = self._monitor(variant.name).call("keyvalue", "configure", "--directory", str(directory))
            store = stores.confined_store(files, Path(files["secrets"]).read_text())
            options = ["--secrets", files["secrets"]]
        serving = self._start_store(store, variant)
        monitor, enforcing = self.start_monitor(
            variant.name, [*options, *variant.monitor, f"--define=REDIS_SOCKET={store.socket}"]
        )
        found = manifests.find(self._documents, self._pipeline)
        listen = manifests.places(found, address, partial(free_port, address[0]))
        bundle = manifests.derive(
            self._documents,
            self._pipeline,
            mode=variant.mode,
            listen=listen,
            faults=variant.faults,
            options=variant.options,
        )
        monitor.call("apply", "-f", str(manifests.write(self._site.state / f"{variant.name}.bundle", bundle)))
        return Stack(
            monitor,
            self._pipeline,
            address,
            variant.mode,
            services=[serving, enforcing],
            serving=self.serving,
            beside=beside(listen, self._pipeline),
        )

    def start_monitor(self, name: str, options: Sequence[str] = ()) -> tuple[Monitor, int]:
        """Start a monitor and wait until it is ready; return it with its process id."""
        site = self._site
        log = site.logs / f"monitor-{name}.log"
        state = site.state / name
        shutil.rmtree(state, ignore_errors=True)
        monitor = self._monitor(name)
        command: list[str | Path] = [
            site.shai, "monitor", "--data", site.data, "--state", state, "--socket", str(monitor.socket),
            "--cpus", ",".join(map(str, sorted(site.cores))), *options,
            *(f"--define={variable}={value}" for variable, value in site.variables.items()),
            *(f"--runtime={runtime}={','.join(paths)}" for runtime, paths in site.runtimes.items()),
            *(f"--allow-source={source}" for source in site.sources),
        ]  # fmt: skip
        process = self._start(f"monitor ({name})", command, log, name)
        self._supervisor.wait_until(monitor.is_ready, process, f"monitor ({name})", log, _START_SECONDS)
        return monitor, process.pid

    def end(self, variant: Variant) -> None:
        """End the store and the monitor, which ends its tasks; remove the monitor's state."""
        self._end(variant.name)

    def end_all(self) -> None:
        """End every stack that was launched and still runs."""
        for name in list(self._running):
            self._end(name)

    def _end(self, name: str) -> None:
        for process in reversed(self._running.pop(name, [])):
            self._supervisor.end(process)
        for directory in (self._site.state / name, self._sockets / name):
            shutil.rmtree(directory, ignore_errors=True)

    def _monitor(self, name: str) -> Monitor:
        return Monitor(self._site.shai, self._sockets / f"{name}.sock")

    def _start_store(self, store: stores.Store, variant: Variant) -> int:
        name = f"{store.name} ({variant.name})"
        log = self._site.logs / f"store-{variant.name}.log"
        process = self._start(name, store.command, log, variant.name)
        self._supervisor.wait_until(store.listens, process, name, log, _START_SECONDS)
        if self._site.seed is not None:
            stores.load(store, self._site.seed)
        return process.pid

    def _start(self, name: str, command: Sequence[str | Path], log: Path, owner: str) -> subprocess.Popen[str]:
        process = self._supervisor.start(name, command, log)
        self._running.setdefault(owner, []).append(process)
        return process
