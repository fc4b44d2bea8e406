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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen import corpus, enforcement, measurement, population, processes, results, stack, stores, tables, workspace
from loadgen.manifests import ManifestError
from loadgen.monitor import MonitorError
from loadgen.orders import Driver, DriverError
from loadgen.plan import PLANS
from loadgen.progress import Progress
from loadgen.protocol import ProtocolError
from loadgen.samples import SampleFile
from loadgen.supervisor import ProcessFailedError, Supervisor, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.plan import Plan
    from loadgen.samples import Sample

STEPS = 8
_ROOT = Path(__file__).resolve().parent.parent
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

    def __init__(
        self,
        *,
        place: workspace.Workspace,
        plan: Plan,
        seed: int,
        launcher: stack.Launcher,
        supervisor: Supervisor,
        run_directory: Path,
        console: Console,
    ) -> None:
        self._place = place
        self._plan = plan
        self._seed = seed
        self._launcher = launcher
        self._supervisor = supervisor
        self._run_directory = run_directory
        self._console = console
        self._progress = Progress(console, STEPS)
        self._samples = place.output / "samples.csv"
        self._results = place.output / "results.json"

    def run(self, *, keep: bool) -> None:
        """Run every step; with ``keep``, stay up until a signal."""
        self._check()
        self._make_corpus()
        confined = self._start()
        self._index(confined)
        self._analyse(confined)
        measured = self._measure(confined)
        found = self._report(measured)
        found["enforcement"] = self._enforce(confined)
        results.write(self._results, found)
        self._console.print(f"Raw samples: {self._samples}; summary: {self._results}; logs: {self._place.logs}")
        if keep:
            self._keep(confined)

    def _check(self) -> None:
        with self._progress.step(1, "set-up: everything built, ports free"):
            self._place.prepare()
            workspace.check_ports([self._launcher.address(variant) for variant in stack.VARIANTS])

    def _make_corpus(self) -> None:
        plan = self._plan
        text = f"corpus: {plan.documents} documents ({plan.corpus}), {plan.users} users, seed {self._seed}"
        with self._progress.step(2, text) as tell:
            words = corpus.command(self._place, plan, self._seed, workspace.java()[0])
            made = corpus.make(self._place, words, self._run_to_end)
            tell("made" if made else "kept from the last run")

    def _run_to_end(self, words: Sequence[str]) -> None:
        log = self._place.logs / "corpus.log"
        status = self._supervisor.start("corpus generator", words, log).wait()
        if status != 0:
            raise ProcessFailedError(f"corpus generator ended with status {status}:\n{tail(log)}")

    def _start(self) -> stack.Stack:
        with self._progress.step(3, "start: key-value store, monitor, policies, facts, pipeline"):
            return self._launch(stack.CONFINED)

    def _launch(self, variant: stack.Variant) -> stack.Stack:
        return self._launcher.launch(variant, self._supervisor, self._run_directory)

    def _index(self, confined: stack.Stack) -> None:
        with self._progress.step(4, "index: Lucene, as a confined task"):
            confined.monitor.call("task", "start", confined.pipeline, "indexer", "--wait")

    def _analyse(self, confined: stack.Stack) -> None:
        with self._progress.step(5, "offline analysis") as tell:
            found = confined.analyse()
            tell(f"{found['conduits']} conduits in {found['classes']} classes, {found['instances']} instances")
        for entry in found["coverage"] or []:
            share = entry["validated"] / entry["expected"] if entry["expected"] else 1.0
            self._console.print(
                f"      {entry['task']} {entry['access']}s {entry['conduits']}: "
                f"{entry['validated']} of {entry['expected']} expected accesses validated ({share:.1%})",
                highlight=False,
            )

    def _measure(self, confined: stack.Stack) -> list[Sample]:
        plan = self._plan
        text = f"search: {plan.slices} slices, about {plan.seconds / 60:.0f} min, seed {self._seed}"
        with self._progress.step(6, text) as tell, self._driver() as driver:
            tell("starting search engines and front ends")
            baseline = self._launch(stack.BASELINE)
            baseline.analyse()
            for one in (confined, baseline):
                one.serve()
                self._pin(one)
            stacks: dict[str, measurement.Stack] = {"baseline": baseline, "dynamic": confined, "shai": confined}
            meter = measurement.Meter(driver, stacks, plan)
            tell("warming up")
            meter.warm_up()
            file = SampleFile(self._samples)

            def record(sample: Sample) -> None:
                file.append(sample)
                length = sample.session_length or "unlimited"
                tell(f"slice {sample.order + 1}: {sample.mode}, {length}: {sample.queries_per_second:.0f} queries/s")

            measured = measurement.run(plan, self._seed, meter, record)
            baseline.stop(self._supervisor)
            tell(f"{sum(sample.queries for sample in measured)} queries")
        return measured

    @contextlib.contextmanager
    def _driver(self) -> Iterator[Driver]:
        log = self._place.logs / "driver.log"
        words = [sys.executable, "-m", "loadgen.driver", "--data", str(self._place.data)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": _ROOT}
        process = self._supervisor.start("load generator", words, log, **pipes)
        with Driver(process) as driver:
            processes.pin([process.pid], workspace.cores()[1])
            yield driver

    def _pin(self, one: stack.Stack) -> None:
        tasks = one.tasks()
        workers = {worker for pid in tasks for worker in processes.descendants(pid)}
        processes.pin({*one.shared(), *tasks, *workers}, workspace.cores()[0])

    def _report(self, measured: Sequence[Sample]) -> dict[str, Any]:
        with self._progress.step(7, "what enforcement costs, beside the paper"):
            found = results.summarise(self._plan, self._seed, measured)
            results.write(self._results, found)
        tables.show(found, self._console)
        return found

    def _enforce(self, confined: stack.Stack) -> dict[str, Any]:
        with self._progress.step(8, "what enforcement stops") as tell:
            people = population.load(self._place.data)
            alice, bob = people["alice"], people["bob"]
            document = enforcement.private_document(self._place.data, bob.name)
            confined.enter("shai")
            searches = enforcement.compare(confined.address, alice, bob, document)
            attempts: dict[str, dict[str, Any]] = {}
            for variant in (stack.BROKEN_BASELINE, stack.BROKEN):
                tell(f"mode {variant.mode}, with a search engine that ignores who may read what")
                broken = self._launch(variant)
                broken.analyse()
                broken.serve()
                attempts[variant.mode] = enforcement.leak_attempt(broken.address, alice, bob.name, document)
                if variant.mode == "shai":
                    enforcement.judge(attempts["baseline"], attempts["shai"], document)
                    record = enforcement.await_record(partial(broken.monitor.audit, ["--denied"]), document)
                broken.stop(self._supervisor)
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
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _keep(self, confined: stack.Stack) -> None:
        people = population.load(self._place.data)
        document = enforcement.private_document(self._place.data, "bob")
        explain = ("explain", "--conduit", document.conduit, "--principal")
        lines = [
            "",
            f"Sys-E is running at {confined.host} (Ctrl-C ends it). Log in with a demo key:",
            *(f"  {name:5} {people[name].seed.hex()}" for name in ("alice", "bob")),
            "Try next:",
            f"  - in the browser: search “{document.title}” as alice and as bob",
            f"  - why:      {confined.monitor.command(*explain, 'alice')}",
            f"  - audit:    {confined.monitor.command('audit', '--principal', 'alice')}",
            f"  - unfriend: {confined.monitor.command('facts', 'remove', 'friends/alice', 'friend', 'bob')}",
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
    launcher = stack.Launcher(place, workspace.java(), options.port)
    plan = PLANS[options.size]
    with place.lock(), place.run_directory() as run_directory, Supervisor() as supervisor:
        demo = Demo(
            place=place,
            plan=plan,
            seed=options.seed,
            launcher=launcher,
            supervisor=supervisor,
            run_directory=run_directory,
            console=console,
        )
        demo.run(keep=options.keep)


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
