# SPDX-License-Identifier: BSD-2-Clause
"""What all scenarios share when Locust runs one of their files: options, the demo that is found, shape and result."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import gevent
from gevent.event import Event
from locust import LoadTestShape, events
from locust.runners import MasterRunner, WorkerRunner

from loadgen import phases
from loadgen.datasets import population
from loadgen.driving.metrics import Tally
from loadgen.driving.users import Behaviour, SearchUser
from loadgen.errors import LoadgenError
from loadgen.scenarios import definitions, friends, options, outcomes, page, processes, site, targets
from loadgen.scenarios.conduct import REPORT, Conductor

if TYPE_CHECKING:
    from collections.abc import Callable

    from locust.argument_parser import LocustArgumentParser
    from locust.env import Environment
    from locust.runners import Runner
    from locust.web import WebUI

    from loadgen.datasets.population import Population
    from loadgen.scenarios.definitions import Scenario
    from loadgen.scenarios.targets import Target

_LEAVE_SECONDS = 15
"""Time that users have for their last query."""

_REPORT_SECONDS = 0.25

_beginning: list[Callable[[], None]] = []
"""What this process does at the start of each run; complete once it is prepared."""
_prepared = Event()


processes.protect()


class Shape(LoadTestShape):
    """The number of users at each moment of a scenario. --users and --run-time scale it."""

    abstract = True
    use_common_options = True
    scenario: ClassVar[Scenario]
    conductor: Conductor | None = None
    """Follows the run; None in a worker process, which follows its master."""

    def tick(self) -> tuple[int, float] | None:
        """Return how many users there have to be now, and how many may come or go per second; None at the end.

        At the end there are no users until the last one has left, so that everything that was sent is counted.
        """
        if self.conductor is None:
            raise RuntimeError("a shape is followed where the run is conducted")
        users = options_of(self.runner).num_users
        elapsed: float = self.get_run_time()  # type: ignore[no-untyped-call]
        now = phases.moment(self.scenario.phases, elapsed, self.conductor.seconds, users)
        if now is not None:
            self.conductor.recording.enter(now.phase)
            return now.users, users
        return None if self.conductor.is_over() else (0, users)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def add_options(parser: LocustArgumentParser) -> None:
    """Add the options of scenarios to Locust's."""
    # Locust would listen for the whole network. It prints and opens the page's address.
    parser.set_defaults(web_host=site.NAME, master_bind_host="127.0.0.1")
    parser.set_defaults(num_users=definitions.USERS, stop_timeout=_LEAVE_SECONDS)
    group = parser.add_argument_group("scenario")
    options.add(group)


@events.init.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def prepare(environment: Environment, runner: Runner, web_ui: WebUI | None, **_: Any) -> None:
    """Find what gets the load, once, before the first user."""
    given = Namespace(**vars(options_of(runner)))  # Locust's page could change the others
    if not isinstance(environment.shape_class, Shape):
        sys.exit("locust: run one file of loadgen/scenarios at a time")
    shape = environment.shape_class
    tally = Tally()
    try:
        judged = options.thresholds_of(shape.scenario, given)
        options.check_by_hand(judged)
        if given.num_users < 1:
            raise options.OptionError(f"--users: expected a number from 1, got {given.num_users}")
        target = targets.find(environment.host, given)
        people = population.load(target.data)
        beginning = [friends.prepare(runner, target, people)] if shape.scenario.unfriending else []
        if given.results and not isinstance(runner, WorkerRunner):
            outcomes.prepare(Path(given.results))
        if web_ui is not None:
            page.protect(web_ui, environment, given.web_base_path)
    except LoadgenError as error:
        # A worker process on the same machine fails for the same reason as its master, which says it.
        sys.exit(1 if isinstance(runner, WorkerRunner) and given.processes else f"locust: {error}")
    environment.host = target.host
    _interrupt_main(runner, shape)
    if isinstance(runner, WorkerRunner):
        beginning.append(_reporting(runner, tally))
    else:
        shape.conductor = Conductor(
            scenario=shape.scenario,
            environment=environment,
            options=given,
            target=target,
            tally=tally,
            judged=judged,
        )
        if web_ui is not None:
            page.extend(web_ui, shape.conductor.parts)
    if not isinstance(runner, MasterRunner):
        beginning.append(_behaving(environment, target, people, tally, given.seed))
    _beginning[:] = beginning
    _prepared.set()


@events.test_start.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def begin(**_: Any) -> None:
    """Begin a run. A worker's master may ask for users as soon as they are connected, before the worker is prepared."""
    _prepared.wait()
    for each in _beginning:
        each()


def _interrupt_main(runner: Runner, shape: Shape) -> None:
    """Let Ctrl-C interrupt the main greenlet: by itself it would end any user with a trace on the terminal.

    SIGTERM does the same: without its page, Locust handles that only after the run. A terminal interrupts all
    processes. A worker with users leaves it to its master, which tells it to stop.
    """
    main = gevent.getcurrent()

    def interrupt() -> None:
        if shape.conductor is not None:
            shape.conductor.interrupted = True
        if not (isinstance(runner, WorkerRunner) and runner.user_count):
            gevent.kill(main, KeyboardInterrupt)

    for number in (signal.SIGINT, signal.SIGTERM):
        gevent.signal_handler(number, interrupt)


def _behaving(
    environment: Environment, target: Target, people: Population, tally: Tally, seed: int
) -> Callable[[], None]:
    """Return what tells the users of this process what to do."""

    def behave() -> None:
        scenario = environment.shape_class.scenario  # type: ignore[union-attr]
        worker = getattr(environment.runner, "worker_index", 0)
        SearchUser.behaviour = Behaviour(
            people,
            target.pipeline,
            target.service if environment.host == target.host else "",
            scenario.session_length,
            scenario.mispredicted,
            f"{seed}/{worker}",
            results=scenario.results,
            counted=tally[scenario.name, target.pipeline, ""],
        )

    return behave


def _reporting(runner: WorkerRunner, tally: Tally) -> Callable[[], None]:
    """Return what lets this worker send its master what it counts, for as long as it lives.

    More often than Locust sends its own reports, so that counts are in the phase in which they belong. Those are sent
    before: Locust would send the last ones when the process ends, which is after the result.
    """

    def report() -> NoReturn:
        while True:
            users, statistics = runner.user_count, dict[str, Any]()
            events.report_to_master.fire(client_id=runner.client_id, data=statistics)  # type: ignore[no-untyped-call]
            runner.send_message("stats", statistics)
            runner.send_message(REPORT, {"users": users, "tally": tally.take()})
            gevent.sleep(_REPORT_SECONDS)

    reports: list[gevent.Greenlet[..., NoReturn]] = []

    def begin_once() -> None:
        if not reports:
            reports.append(runner.greenlet.spawn(report))  # ends with the runner

    return begin_once


def options_of(runner: Runner | None) -> Namespace:
    """Return the options of the locust command."""
    if runner is None or runner.environment.parsed_options is None:
        raise RuntimeError("this file is for the locust command; measurements use loadgen.driving.driver")
    found: Namespace = runner.environment.parsed_options
    return found
