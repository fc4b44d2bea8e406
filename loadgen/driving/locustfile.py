# SPDX-License-Identifier: BSD-2-Clause
"""Locust against a running Sys-E, by hand.

.venv/bin/locust -f loadgen/driving/locustfile.py --host http://127.0.10.1:8640 --data out/demo/quick/data

--help lists the options of these users, such as --session-length.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from locust import events

from loadgen.datasets import population
from loadgen.driving.users import Scenario, SearchUser
from loadgen.plan import UNLIMITED

if TYPE_CHECKING:
    from locust.argument_parser import LocustArgumentParser
    from locust.env import Environment

__all__ = ["SearchUser"]  # Locust runs the user classes that are in this module


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def add_options(parser: LocustArgumentParser) -> None:
    """Add Sys-E's options to Locust's."""
    group = parser.add_argument_group("Sys-E")
    group.add_argument("--data", required=True, help="data directory of the corpus generator")
    group.add_argument("--pipeline", default="syse", help="name of the pipeline, which logins sign")
    group.add_argument("--service", default="", help="the connection conduit's service; --host when left out")
    group.add_argument(
        "--session-length", type=int, default=UNLIMITED, help="queries per session; 0 (the default): one session each"
    )
    group.add_argument(
        "--mispredicted",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of sessions from a foreign region, 0 … 1",
    )
    group.add_argument("--seed", type=int, default=1, help="of users, queries and regions")


@events.init.add_listener  # type: ignore[untyped-decorator] # Locust's events have no types
def prepare(environment: Environment, **_: Any) -> None:
    """Read the population once, before the first user."""
    options = environment.parsed_options
    if options is None:
        raise RuntimeError("this file is for the locust command; measurements use loadgen.driving.driver")
    SearchUser.scenario = Scenario(
        population.load(Path(options.data)),
        options.pipeline,
        options.service,
        options.session_length,
        options.mispredicted,
        options.seed,
    )
