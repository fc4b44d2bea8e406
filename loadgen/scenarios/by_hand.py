# SPDX-License-Identifier: BSD-2-Clause
"""What all scenarios share when Locust runs one of their files: options, the demo that is found, and the shape."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from locust import LoadTestShape, events
from locust.runners import WorkerRunner

from loadgen import phases
from loadgen.datasets import population
from loadgen.driving.metrics import Tally
from loadgen.driving.users import Behaviour, SearchUser
from loadgen.errors import LoadgenError
from loadgen.scenarios import definitions, targets

if TYPE_CHECKING:
    from argparse import Namespace

    from locust.argument_parser import LocustArgumentParser
    from locust.env import Environment
    from locust.runners import Runner

    from loadgen.scenarios.definitions import Scenario

TALLY = Tally()
"""What this process has counted."""


class Shape(LoadTestShape):
    """The number of users at each moment of a scenario. --users and --run-time scale it."""

    abstract = True
    use_common_options = True
    scenario: ClassVar[Scenario]

    def tick(self) -> tuple[int, float] | None:
        """Return how many users there have to be now, and how many may come or go per second; None at the end."""
        options = _options(self.runner)
        users = options.num_users
        elapsed: float = self.get_run_time()  # type: ignore[no-untyped-call]
        now = phases.moment(self.scenario.phases, elapsed, seconds(self.scenario, options), users)
        return None if now is None else (now.users, users)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def add_options(parser: LocustArgumentParser) -> None:
    """Add the options of scenarios to Locust's."""
    parser.set_defaults(num_users=definitions.USERS, stop_timeout=15)
    group = parser.add_argument_group("scenario")
    targets.add_options(group)
    group.add_argument("--seed", type=int, default=1, help="of users, queries and regions")


@events.init.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def prepare(environment: Environment, runner: Runner, **_: Any) -> None:
    """Find what gets the load, once, before the first user."""
    options = _options(runner)
    try:
        target = targets.find(environment.host, options)
        people = population.load(target.data)
    except LoadgenError as error:
        # A worker process on the same machine fails for the same reason as its master, which says it.
        sys.exit(1 if isinstance(runner, WorkerRunner) and options.processes else f"locust: {error}")
    environment.host = target.host
    scenario: Scenario = environment.shape_class.scenario  # type: ignore[union-attr]

    @environment.events.test_start.add_listener  # type: ignore[untyped-decorator] # as above
    def begin(**_: Any) -> None:
        worker = getattr(runner, "worker_index", 0)
        SearchUser.behaviour = Behaviour(
            people,
            target.pipeline,
            target.service if environment.host == target.host else "",
            scenario.session_length,
            scenario.mispredicted,
            f"{options.seed}/{worker}",
            counted=TALLY[scenario.name, target.pipeline, ""],
        )


def seconds(scenario: Scenario, options: Namespace) -> float:
    """Return how long a run takes."""
    return float(options.run_time or scenario.seconds[options.size])


def _options(runner: Runner | None) -> Namespace:
    if runner is None or runner.environment.parsed_options is None:
        raise RuntimeError("this file is for the locust command; measurements use loadgen.driving.driver")
    options: Namespace = runner.environment.parsed_options
    return options
