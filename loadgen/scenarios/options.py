# SPDX-License-Identifier: BSD-2-Clause
"""The options of scenarios, which Locust and ``python -m loadgen scenario`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen import thresholds
from loadgen.errors import LoadgenError
from loadgen.scenarios import targets

if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup
    from collections.abc import Iterable

    from loadgen.scenarios.definitions import Scenario
    from loadgen.thresholds import Threshold

USUAL_THRESHOLD = "failures>0"


class OptionError(LoadgenError):
    """An option that does not fit load by hand; the text says why, and what to do instead."""


def add(group: _ArgumentGroup) -> None:
    """Add the options."""
    targets.add_options(group)
    group.add_argument("--seed", type=int, default=1, help="of users, queries and regions")
    group.add_argument(
        "--fail-on",
        metavar="THRESHOLD",
        action="append",
        help=f'exit with status 3 if it is exceeded: "p99>50ms"; may be repeated ({USUAL_THRESHOLD} without it)',
    )
    group.add_argument("--results", metavar="DIR", help="write result.json, parts.csv, table.txt and locust.json there")
    group.add_argument("--output", choices=("text", "json"), default="text", help="what is printed at the end")


def words(options: Namespace) -> list[str]:
    """Return the options as words of a command line."""
    names = (
        "data",
        "pipeline",
        "service",
        "socket",
        "scrape",
        "cluster",
        "namespace",
        "size",
        "seed",
        "results",
        "output",
    )
    given = [(name, getattr(options, name)) for name in names]
    given += [("fail-on", text) for text in options.fail_on or ()]
    return [word for name, value in given if value is not None for word in (f"--{name}", str(value))]


def thresholds_of(scenario: Scenario, options: Namespace) -> list[Threshold]:
    """Return what a run is judged by: what was asked for, or else that nothing fails; and the scenario's own."""
    return [thresholds.parse(text) for text in (*(options.fail_on or (USUAL_THRESHOLD,)), *scenario.fails_on)]


def check_by_hand(judged: Iterable[Threshold]) -> None:
    """Raise OptionError for a threshold that load by hand cannot be judged by."""
    for threshold in judged:
        if threshold.compared:
            raise OptionError(
                f"{threshold}: {threshold.quantity} compares with mode baseline, which load by hand does not measure; "
                "`make scenario` and Benchmarks do (docs/benchmarks.md)"
            )
