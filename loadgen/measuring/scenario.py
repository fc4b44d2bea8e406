# SPDX-License-Identifier: BSD-2-Clause
"""Runs a scenario of load on the running demo, or on another service; without a name it lists the scenarios.

python -m loadgen scenario spike --fail-on "p99>50ms"

It runs Locust with the file of the scenario. A threshold that compares with mode baseline, such as "overhead>5%", makes
it a measurement of the demo's member in both modes instead, as a Benchmark is. Exit status: 0 if no threshold was
exceeded, 3 if one was, 1 if the scenario could not be run, 2 for wrong options, 130 after an interrupt.
docs/benchmarks.md describes the scenarios, the thresholds and the results.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.measuring import comparison
from loadgen.scenarios import options as shared
from loadgen.scenarios import outcomes
from loadgen.scenarios.definitions import SCENARIOS, USERS
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_ROOT = Path(__file__).resolve().parents[2]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", choices=list(SCENARIOS), help=", ".join(SCENARIOS))
    load = parser.add_argument_group("load")
    load.add_argument("--host", metavar="URL", help="the service that gets the load (the running demo)")
    most = f"the greatest number at the same time ({USERS})"
    load.add_argument("--users", type=whole_number, default=USERS, help=most)
    load.add_argument("--run-time", metavar="TIME", help="such as 90s or 5m (as long as the size of the data asks for)")
    load.add_argument("--workers", type=whole_number, default=1, help="processes that make the load (1)")
    shared.add(parser.add_argument_group("service, thresholds, results"))
    comparison.add_options(parser.add_argument_group("comparison with mode baseline"))


def whole_number(text: str) -> int:
    """Return the number from 1 that an option has; argparse names the function where it is none."""
    found = int(text)
    if found < 1:
        raise ArgumentTypeError(f"expected a number from 1, got {text!r:.40}")
    return found


def run(options: Namespace) -> None:
    """Become Locust with the scenario's file, or compare with mode baseline; LoadgenError when an option is wrong."""
    if options.name is None:
        _list(options.output)
        return
    scenario = SCENARIOS[options.name]
    judged = shared.thresholds_of(scenario, options)
    options.results = options.results or str(_ROOT / "out" / "scenarios" / options.name)
    outcomes.prepare(Path(options.results))
    if any(threshold.compared for threshold in judged):
        comparison.run(scenario, judged, options)
        return
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "locust", *_words(options)])  # noqa: S606 - no shell is meant


def _words(options: Namespace) -> list[str]:
    """Return Locust's arguments. It prints its own tables to its log, which is left out."""
    words = ["-f", str(_ROOT / "loadgen" / "scenarios" / f"{options.name}.py")]
    words += ["--headless", "--only-summary", "--skip-log-setup", "--users", str(options.users)]
    words += ["--host", options.host] if options.host else []
    words += ["--run-time", options.run_time] if options.run_time else []
    if options.workers > 1:
        port = str(free_port())
        words += ["--processes", str(options.workers), "--master-bind-port", port, "--master-port", port]
    return words + shared.words(options)


def _list(output: str) -> None:
    if output == "json":
        found = [
            {**vars(scenario), "phases": [vars(phase) for phase in scenario.phases], "seconds": dict(scenario.seconds)}
            for scenario in SCENARIOS.values()
        ]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    width = max(map(len, SCENARIOS))
    for scenario in SCENARIOS.values():
        print(f"{scenario.name:{width}}  {scenario.description}\n{'':{width}}  {scenario.question}")
    print("\nmake scenario NAME=spike runs one; make scenario SCENARIO=--help lists the options.")
