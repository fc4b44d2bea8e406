# SPDX-License-Identifier: BSD-2-Clause
"""The main job on one machine: Sys-E under enforcement, measured and put to the test.

python -m loadgen.demo --size quick [--keep]
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen import corpus, enforcement, measurement, population, processes, results, stack, stores, tables, workspace
from loadgen.manifests import ManifestError
from loadgen.monitor import Monitor, MonitorError
from loadgen.orders import Driver, DriverError
from loadgen.plan import PLANS
from loadgen.progress import Progress
from loadgen.protocol import ProtocolError
from loadgen.samples import SampleFile
from loadgen.supervisor import ProcessFailedError, Supervisor, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.plan import Plan
    from loadgen.samples import Sample

STEPS = 8
WARM_UP_SECONDS = 3.0
_ROOT = Path(__file__).resolve().parent.parent
_START_SECONDS = 30.0
_PLAIN_WIDTH = 160  # the table's, where there is no terminal to ask

FAILURES = (
    DriverError,
    ManifestError,
    MonitorError,
    OSError,
    ProcessFailedError,
    ProtocolError,
    enforcement.EnforcementError,
    measurement.MeasurementError,
    population.PopulationError,
    processes.ProcessGoneError,
    stores.StoreError,
    workspace.WorkspaceError,
)
"""What may go wrong on a user's machine: reported in a line, without a trace of calls."""


class Demo:
    """One run. Its methods are the steps, in order; each leaves what the next ones need."""

    def __init__(self, place: workspace.Workspace, plan: Plan, seed: int, port: int | None, console: Console) -> None:
        self._place = place
        self._plan = plan
        self._seed = seed
        self._progress = Progress(console, STEPS)
        self._console = console
        self._family = stack.Family(place.examples / "pipeline.yaml", port)
        self._java, self._java_home = workspace.java()
        self._shared: list[int] = []
        self._samples = place.output / "samples.csv"
        self._results = place.output / "results.json"

    def run(self, supervisor: Supervisor, run_directory: Path, *, keep: bool) -> None:
        """Run every step; with ``keep``, stay up until a signal."""
        self._check()
        self._make_corpus(supervisor)
        monitor = self._start(supervisor, run_directory)
        self._index(monitor)
        self._analyse(monitor)
        measured = self._measure(supervisor, monitor)
        found = self._report(measured)
        found["enforcement"] = self._enforce(monitor)
        results.write(self._results, found)
        self._console.print(f"Raw samples: {self._samples}; summary: {self._results}; logs: {self._place.logs}")
        if keep:
            self._keep(monitor)

    def _check(self) -> None:
        with self._progress.step(1, "set-up: everything built, ports free"):
            self._place.prepare()
            workspace.check_ports(self._family.addresses())

    def _make_corpus(self, supervisor: Supervisor) -> None:
        plan = self._plan
        text = f"corpus: {plan.documents} documents ({plan.corpus}), {plan.users} users, seed {self._seed}"
        with self._progress.step(2, text) as tell:
            words = corpus.command(self._place, plan, self._seed, self._java)
            made = corpus.make(self._place, words, lambda words: self._run_to_end(supervisor, "corpus", words))
            tell("made" if made else "kept from the last run")

    def _run_to_end(self, supervisor: Supervisor, name: str, words: Sequence[str]) -> None:
        log = self._place.logs / f"{name}.log"
        status = supervisor.start(name, words, log).wait()
        if status != 0:
            raise ProcessFailedError(f"{name} ended with status {status}:\n{tail(log)}")

    def _start(self, supervisor: Supervisor, run_directory: Path) -> Monitor:
        with self._progress.step(3, "start: key-value stores, monitor, policies, facts, pipelines") as tell:
            monitor = Monitor(self._place.shai, run_directory / "shai.sock")
            files = monitor.call("keyvalue", "configure", "--directory", str(run_directory / "keyvalue"))
            confined = stores.confined_store(files, Path(files["secrets"]).read_text())
            plain = stores.open_store(run_directory)
            for store in (confined, plain):
                self._start_store(supervisor, store)
            self._start_monitor(supervisor, monitor, confined, files["secrets"])
            tell("applying manifests")
            monitor.call("apply", "-f", str(self._place.examples))
            self._family.write(self._place.manifests, plain.socket)
            monitor.call("apply", "-f", str(self._place.manifests))
            tell(f"{1 + len(stack.VARIANTS)} pipelines")
        return monitor

    def _start_store(self, supervisor: Supervisor, store: stores.Store) -> None:
        log = self._place.logs / f"{store.socket.stem}.log"
        process = supervisor.start(store.name, store.command, log)
        supervisor.wait_until(store.socket.exists, process, store.name, log, _START_SECONDS)
        stores.load_profiles(store, self._place.data / "profiles.jsonl")
        self._shared.append(process.pid)

    def _start_monitor(self, supervisor: Supervisor, monitor: Monitor, store: stores.Store, secrets: str) -> None:
        log = self._place.logs / "monitor.log"
        defines = {
            "JAVA": self._java,
            "JAVA_HOME": self._java_home,
            "SYSE": self._place.syse,
            "REDIS_SOCKET": store.socket,
        }
        command: list[str | Path] = [
            self._place.shai, "monitor", "--data", self._place.data, "--state", self._place.state,
            "--socket", monitor.socket, "--secrets", secrets,
            *(f"--define={name}={value}" for name, value in defines.items()),
        ]  # fmt: skip
        process = supervisor.start("monitor", command, log)
        supervisor.wait_until(monitor.is_ready, process, "monitor", log, _START_SECONDS)
        self._shared.append(process.pid)

    def _index(self, monitor: Monitor) -> None:
        with self._progress.step(4, "index: Lucene, as a confined task"):
            monitor.call("task", "start", self._family.name, "indexer", "--wait")

    def _analyse(self, monitor: Monitor) -> None:
        with self._progress.step(5, "offline analysis") as tell:
            names = [self._family.name, *(variant.name for variant in stack.VARIANTS)]
            found, *_ = [monitor.call("analyze", "--pipeline", name) for name in names]
            tell(f"{found['conduits']} conduits in {found['classes']} classes, {found['instances']} instances")
        for entry in found["coverage"]:
            share = entry["validated"] / entry["expected"] if entry["expected"] else 1.0
            self._console.print(
                f"      {entry['task']} {entry['access']}s {entry['conduits']}: "
                f"{entry['validated']} of {entry['expected']} expected accesses validated ({share:.1%})",
                highlight=False,
            )

    def _measure(self, supervisor: Supervisor, monitor: Monitor) -> list[Sample]:
        plan = self._plan
        confined, baseline = self._family.example(monitor), self._family.variant(monitor, stack.BASELINE)
        stacks: dict[str, measurement.Stack] = {"baseline": baseline, "dynamic": confined, "shai": confined}
        text = f"search: {plan.slices} slices, about {plan.seconds / 60:.0f} min, seed {self._seed}"
        with self._progress.step(6, text) as tell, self._driver(supervisor) as driver:
            tell("starting search engines and front ends")
            confined.start()
            baseline.start()
            self._pin(confined, baseline)
            meter = measurement.Meter(driver, stacks, self._shared, plan)
            tell("warming up")
            meter.warm_up(min(WARM_UP_SECONDS, plan.slice_seconds))
            file = SampleFile(self._samples)

            def record(sample: Sample) -> None:
                file.append(sample)
                length = sample.session_length or "unlimited"
                tell(f"slice {sample.order + 1}: {sample.mode}, {length}: {sample.queries_per_second:.0f} queries/s")

            measured = measurement.run(plan, self._seed, meter, record)
            baseline.stop()
            tell(f"{sum(sample.queries for sample in measured)} queries")
        return measured

    @contextlib.contextmanager
    def _driver(self, supervisor: Supervisor) -> Any:
        log = self._place.logs / "driver.log"
        words = [sys.executable, "-m", "loadgen.driver", "--data", str(self._place.data)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": _ROOT}
        process = supervisor.start("load generator", words, log, **pipes)
        with Driver(process) as driver:
            processes.pin([process.pid], workspace.cores()[1])
            yield driver

    def _pin(self, *stacks: stack.PipelineStack) -> None:
        tasks = [pid for one in stacks for pid in one.tasks()]
        workers = {worker for pid in tasks for worker in processes.descendants(pid)}
        processes.pin({*self._shared, *tasks, *workers}, workspace.cores()[0])

    def _report(self, measured: Sequence[Sample]) -> dict[str, Any]:
        with self._progress.step(7, "what enforcement costs, beside the paper"):
            found = results.summarise(self._plan, self._seed, measured)
            results.write(self._results, found)
        tables.show(found, self._console)
        return found

    def _enforce(self, monitor: Monitor) -> dict[str, Any]:
        with self._progress.step(8, "what enforcement stops") as tell:
            people = population.load(self._place.data)
            alice, bob = people["alice"], people["bob"]
            document = enforcement.private_document(self._place.data, bob.name)
            confined = self._family.example(monitor)
            searches = enforcement.compare(confined.address, alice, bob, document)
            attempts = {}
            for variant in (stack.BROKEN_BASELINE, stack.BROKEN):
                tell(f"{variant.name}: a search engine that ignores who may read what")
                broken = self._family.variant(monitor, variant)
                broken.start()
                attempts[variant.mode] = enforcement.leak_attempt(broken.address, alice, bob.name, document)
                broken.stop()
            enforcement.judge(attempts["baseline"], attempts["shai"], document)
            record = enforcement.await_record(lambda: monitor.audit(["--principal", alice.name]), document)
        found = {"searches": searches, "leak": {**attempts, "document": document.conduit, "audit": record}}
        self._tell_enforcement(found)
        return found

    def _tell_enforcement(self, found: dict[str, Any]) -> None:
        searches, leak = found["searches"], found["leak"]
        lines = [f"Search for “{searches['query']}”, the title of bob's private {searches['document']}:"]
        for name in ("alice", "bob"):
            private = sum(result["owner"] == "bob" and result["visibility"] == "private" for result in searches[name])
            lines.append(f"  as {name}: {len(searches[name])} results, {private} of them private to bob")
        lines += [
            "The same search as alice, with an engine broken so that it returns everything:",
            f"  baseline: bob's document {'LEAKED' if leak['baseline']['leaked'] else 'did not leak'}",
            f"  shai:     stopped, {leak['shai']['withheld']} results withheld",
            "  audit:    {operation} {conduit} by {instance} refused: {reason}".format_map(leak["audit"]),
        ]
        for line in lines:
            self._console.print(line, markup=False, highlight=False)

    def _keep(self, monitor: Monitor) -> None:
        confined = self._family.example(monitor)
        confined.enter("shai")
        people = population.load(self._place.data)
        document = enforcement.private_document(self._place.data, "bob")
        explain = ("explain", "--pipeline", self._family.name, "--conduit", document.conduit, "--principal")
        lines = [
            "",
            f"Sys-E is running at {confined.host} (Ctrl-C ends it). Log in with a demo key:",
            *(f"  {name:5} {people[name].seed.hex()}" for name in ("alice", "bob")),
            "Try next:",
            f"  - in the browser: search “{document.title}” as alice and as bob",
            f"  - why:      {monitor.command(*explain, 'alice')}",
            f"  - audit:    {monitor.command('audit', '--principal', 'alice')}",
            f"  - unfriend: {monitor.command('facts', 'remove', 'friends/alice', 'friend', 'bob')}",
            "    then search again as bob, in a new session: alice's friends-only documents are gone",
        ]
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        while True:
            signal.pause()


def main(arguments: Sequence[str] | None = None, root: Path = _ROOT) -> int:
    """Run the demo; 0 when everything was shown, 1 when something failed, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=PLANS, default="quick")
    parser.add_argument("--keep", action="store_true", help="leave Sys-E running until Ctrl-C")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus, the order of slices and the queries")
    parser.add_argument("--port", type=int, help="first of four ports, instead of the manifest's")
    parser.add_argument("--out", type=Path, default=root / "out" / "demo")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    place = workspace.Workspace(root, options.out.resolve(), options.size)
    started = time.monotonic()
    return _guarded(console, lambda: _run(place, options, console), started)


def _run(place: workspace.Workspace, options: argparse.Namespace, console: Console) -> None:
    demo = Demo(place, PLANS[options.size], options.seed, options.port, console)
    with place.lock(), place.run_directory() as run_directory, Supervisor() as supervisor:
        demo.run(supervisor, run_directory, keep=options.keep)


def _guarded(console: Console, run: Callable[[], None], started: float) -> int:
    try:
        run()
    except KeyboardInterrupt:
        console.print("Interrupted; every process has been ended.")
        return 130
    except FAILURES as error:
        console.print(f"demo: {error}", style="bold red", markup=False, soft_wrap=True)
        return 1
    console.print(f"Done in {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
