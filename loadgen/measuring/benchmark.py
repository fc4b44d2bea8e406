# SPDX-License-Identifier: BSD-2-Clause
"""Measures the cost of enforcement for a pipeline on a running pool member.

python -m loadgen benchmark --member member.json --plan plan.json --output DIR

Modes other than baseline are measured on the member itself. Its mode is always restored at the end. Mode baseline is
measured on two equal twins beside the member, which are removed afterwards: what the second one, the control, costs
more or less than the first is what the measurement cannot tell. The command updates progress.json while it runs, adds
to samples.csv after each slice, and writes results.json and table.txt at the end. It has to run on the member's host,
as a user who may read the member's files and pin its processes.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen import plan as plans
from loadgen import thresholds
from loadgen.datasets import corpus, population
from loadgen.errors import LoadgenError
from loadgen.measuring import agreement, beside, cores, measurement, workers
from loadgen.measuring.status import State, StatusFile
from loadgen.measuring.workers import Workers
from loadgen.results import figures, summary, tables
from loadgen.results.samples import SampleFile
from loadgen.scenarios.definitions import SCENARIOS, Scenario
from loadgen.stacks import launcher, manifests, member, remote, twins
from loadgen.stacks.ports import free_port
from loadgen.stacks.remote import RemoteStack
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.plan import Plan
    from loadgen.results.samples import Sample
    from loadgen.stacks.member import Member
    from loadgen.stacks.stack import Stack

_MODE_NOTE = "mode"
_STEADY = Scenario("", "", "").phases
_USUAL_MODE = "shai"
_ANSWER_SECONDS = 15.0
_NOT_COMPARED = (
    "The same search returns other documents each time, so whether member and twins find the same could not be seen."
)


class ExceededError(LoadgenError):
    """A threshold of --fail-on is exceeded; the results are written. The text has the figures."""

    exit_status = 3


class Benchmark:
    """One measurement. ``scratch`` is a private directory beside the member's data."""

    def __init__(
        self, subject: Member, plan: Plan, output: Path, status: StatusFile, *, scratch: Path, load: Workers
    ) -> None:
        self._member = subject
        self._plan = plan
        self._workers = load
        self._output = output
        self._status = status
        self._scratch = scratch
        self._notes = list(remote.NOTES if subject.twins else ())
        self._logs = output / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)

    def run(self, supervisor: Supervisor) -> list[str]:
        """Measure, and write the results; return what the thresholds that are exceeded say."""
        self._status.tell("looking at the member")
        documents = manifests.read(self._member.manifests)
        people = population.load(self._member.data)
        confined = self._member.attach(documents)
        confined.await_service(_ANSWER_SECONDS)
        with (
            self._mode_put_back(confined, documents, supervisor),
            self._twins(confined, documents, supervisor) as pair,
            self._workers.crew(self._plan, self._member.data, self._logs, supervisor, self._status.tell) as driver,
            cores.pinned([confined, *pair.values()], supervisor, self._plan.workers),
        ):
            if not all(agreement.find_the_same(confined, twin, people) for twin in pair.values()):
                self._notes.append(_NOT_COMPARED)
            stacks = dict.fromkeys(self._plan.modes, confined) | pair
            meter = measurement.Meter(driver, stacks, self._plan)
            self._status.tell("warming up")
            meter.warm_up()
            measured = self._measure(meter)
            self._write(measured, {})
            found = self._beside(driver, meter, confined, beside.Site(documents, self._member, people))
        return self._write(measured, found)

    def _beside(
        self, load: measurement.Load, meter: measurement.Meter, confined: Stack, site: beside.Site
    ) -> dict[str, Any]:
        """Do once what is done beside searches, and return what was counted.

        Afterwards the log has facts about documents that it did not have while slices were measured.
        """
        if not beside.tasks(confined):
            return {}
        missing = beside.missing(self._plan, self._member)
        if missing:
            self._notes.append(missing)
            return {}
        self._status.tell("the support reads documents, and users have topics made")
        meter.enter(beside.MODE)
        found = beside.run(load, confined, site, self._plan)
        self._notes += beside.doubts(confined, found)
        return found

    def _measure(self, meter: measurement.Meter) -> list[Sample]:
        file = SampleFile(self._output / "samples.csv")

        def record(sample: Sample) -> None:
            file.append(sample)
            self._status.tell(
                f"mode {sample.mode}, {plans.sessions(sample.session_length)}: "
                f"{sample.queries_per_second:.0f} queries/s",
                done=sample.order + 1,
            )

        return measurement.run(self._plan, meter, record)

    def _write(self, measured: Sequence[Sample], counted: dict[str, Any]) -> list[str]:
        found = summary.summarise(self._plan, corpus.describe(self._member.data), measured, self._notes)
        found["beside"] = counted
        found["thresholds"] = figures.judge(self._plan.thresholds, found, measured)
        summary.write(self._output / "results.json", {**found, **tables.figures(found)})
        (self._output / "table.txt").write_text(tables.plain(found))
        return [str(judged["message"]) for judged in found["thresholds"] if judged["exceeded"]]

    @contextlib.contextmanager
    def _mode_put_back(
        self, confined: Stack, documents: Sequence[dict[str, Any]], supervisor: Supervisor
    ) -> Iterator[None]:
        """Restore the pipeline's mode, even if an earlier run was killed before it could.

        On another host no note can be left: there, the mode is the one that the manifest says.
        """
        note = self._scratch / _MODE_NOTE
        if self._member.twins:
            mode = str(manifests.find(documents, self._member.pipeline)["spec"].get("mode", _USUAL_MODE))
        else:
            mode = note.read_text() if note.exists() else confined.mode
        note.write_text(mode)
        try:
            yield
        finally:
            with supervisor.undisturbed():
                confined.put_back(mode)
                note.unlink()

    @contextlib.contextmanager
    def _twins(
        self, confined: Stack, documents: Sequence[dict[str, Any]], supervisor: Supervisor
    ) -> Iterator[dict[str, Stack]]:
        self._status.tell("starting twins in mode baseline")
        if isinstance(confined, RemoteStack):
            yield dict(remote.twins(confined, documents, self._member.twins, self._scratch))
            return
        # The same cores as for the member, because programs size themselves by the cores that they find.
        usual = frozenset(os.sched_getaffinity(next(iter(confined.tasks().values()))))
        with twins.launcher(
            self._member, documents, place=self._scratch, logs=self._logs, cores=usual, supervisor=supervisor
        ) as stacks:
            host = confined.address[0]
            started = {}
            for variant in launcher.TWINS:
                twin = started[variant.name] = stacks.launch(variant, (host, free_port(host)))
                twin.analyze()
                twin.serve()
            yield started


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--member", type=Path, required=True, help="JSON: where the member is (loadgen.stacks.member)")
    parser.add_argument("--plan", type=Path, required=True, help="JSON: rounds, modes, … as in a Benchmark's spec")
    parser.add_argument("--output", type=Path, required=True, help="directory for what is written")
    workers.add_arguments(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="THRESHOLD",
        help='such as "overhead>5%%": exit with status 3 if this holds; may be repeated',
    )


def run(options: Namespace, tell: Callable[[str], None] | None = None) -> None:
    """Measure; progress.json has the end state in any case, and ``tell`` is told the progress, too."""
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    status = StatusFile(output / "progress.json", tell)
    try:
        exceeded = _run(options, output, status)
    except KeyboardInterrupt:
        status.end(State.CANCELLED, "interrupted; everything is as it was before")
        raise
    except (LoadgenError, OSError) as error:
        status.fail(error)
        raise
    status.end(State.COMPLETE, "done")
    if options.fail_on and exceeded:
        raise ExceededError("; ".join(exceeded))


def _run(options: Namespace, output: Path, status: StatusFile) -> list[str]:
    try:
        plan = scenario_of(plans.read(json.loads(options.plan.read_text())))
    except (OSError, ValueError) as error:
        raise plans.PlanError(f"cannot read {options.plan}: {error}") from error
    plan = replace(plan, thresholds=tuple(dict.fromkeys([*plan.thresholds, *options.fail_on])))
    for text in plan.thresholds:
        thresholds.parse(text)  # refused before anything is measured
    status.total = plan.slices
    subject = member.read(options.member)
    with Supervisor() as supervisor, twins.room(subject) as scratch:
        measured = Benchmark(subject, plan, output, status, scratch=scratch, load=Workers.of(options))
        return measured.run(supervisor)


def scenario_of(plan: Plan) -> Plan:
    """Return a plan with what its scenario says; PlanError when it is none that can be measured.

    Each slice is a run of the whole scenario, so that all modes of a round get each of its phases, with the same users
    and queries. Its phases are stretched to the length of a slice.
    """
    if plan.scenario == plans.SEARCH:
        return plan
    found = SCENARIOS.get(plan.scenario)
    if found is None or found.unfriending:
        known = ", ".join([plans.SEARCH, *(name for name, one in SCENARIOS.items() if not one.unfriending)])
        raise plans.PlanError(
            f"scenario: {plan.scenario!r} cannot be measured in several modes; expected one of {known}"
        )
    return replace(
        plan,
        session_lengths=(found.session_length,),
        phases=() if found.phases == _STEADY else found.phases,
        mispredicted=found.mispredicted,
    )
