# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios: what each one asks, and the load that it runs. The only place that lists them.

Nothing here needs Locust, so that manifests, documents and measurements can name scenarios, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from loadgen.phases import Phase, level
from loadgen.plan import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Mapping

USERS = 24
"""The greatest number of users at the same time, unless a person asks for another one."""

_SECONDS = MappingProxyType({"smoke": 15, "quick": 60, "standard": 300, "paper": 1800})


@dataclass(frozen=True)
class Scenario:
    """A shape of load on a search service, and what its users do."""

    name: str
    """As in the file's name, in ``make scenario NAME=…`` and in a Benchmark's ``spec.scenario``."""
    description: str
    question: str
    """What the run answers."""
    phases: tuple[Phase, ...] = (level("steady", 1.0, 1.0),)
    session_length: int = 8
    """Queries per session; 0: one session for the whole run."""
    mispredicted: float = 0.0
    """The share of sessions (0 … 1) from another region than their user's home."""
    results: int = 10
    """Documents that a search asks for."""
    unfriending: bool = False
    """Whether friendships end while the friends search."""
    fails_on: tuple[str, ...] = ()
    """Thresholds that hold without being asked for."""
    seconds: Mapping[str, int] = field(default_factory=lambda: _SECONDS)
    """How long the run takes, by the size of the demo's data."""


_ALL = (
    Scenario(
        "steady",
        "the same number of users all the time, each in one session",
        "What does a query cost, and how many are answered?",
        session_length=UNLIMITED,
    ),
    Scenario(
        "sessions_1",
        "a new session for each query",
        "What does a session cost? Each query pays for a whole one.",
        session_length=1,
    ),
    Scenario(
        "sessions_8",
        "sessions of 8 queries",
        "What does enforcement cost people who search a few times?",
    ),
    Scenario(
        "sessions_32",
        "sessions of 32 queries",
        "How much of the cost of a session is left in a long one?",
        session_length=32,
    ),
    Scenario(
        "spike",
        "a quarter of the users, then all of them at once, then a quarter again",
        "What does a sudden crowd wait for, and is it over when the crowd has left?",
        phases=(level("before", 0.35, 0.25), level("spike", 0.3, 1.0), level("after", 0.35, 0.25)),
    ),
    Scenario(
        "ramp",
        "more and more users",
        "With how many users do answers become slower?",
        phases=(
            Phase("first third", 0.33, 0.0, 0.33),
            Phase("second third", 0.33, 0.33, 0.66),
            Phase("last third", 0.34, 0.66, 1.0),
        ),
    ),
    Scenario(
        "soak",
        "half of the users for a long time",
        "Does anything grow or slow down with time? Its first and its last part are to be alike.",
        phases=(level("first part", 0.2, 0.5), level("middle", 0.6, 0.5), level("last part", 0.2, 0.5)),
        seconds=MappingProxyType({"smoke": 30, "quick": 600, "standard": 3600, "paper": 28800}),
    ),
    Scenario(
        "mispredicted",
        "every second session from a region that the analysis did not expect",
        "What do accesses cost that the analysis did not foresee?",
        mispredicted=0.5,
    ),
    Scenario(
        "unfriending",
        "friendships end and begin again while the former friends search",
        "Is a document ever shown after the answer that says that it must not be?",
        session_length=4,
        results=50,  # so that a document that must not be shown is not cut off
        unfriending=True,
        fails_on=("violations>0", "checked<1"),
    ),
)

SCENARIOS = MappingProxyType({scenario.name: scenario for scenario in _ALL})
"""All scenarios by name, in the order in which they are listed."""
