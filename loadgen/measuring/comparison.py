# SPDX-License-Identifier: BSD-2-Clause
"""Measures a scenario by hand in mode baseline and others, on the member of the running demo, as a Benchmark does."""

from __future__ import annotations

import json
import os
import stat
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.driving.discovery import Discovery
from loadgen.errors import LoadgenError
from loadgen.measuring import benchmark
from loadgen.plan import BASELINE, CONTROL
from loadgen.scenarios import demonstration

if TYPE_CHECKING:
    from argparse import _ArgumentGroup
    from collections.abc import Mapping, Sequence

    from loadgen.scenarios.definitions import Scenario
    from loadgen.scenarios.demonstration import Demo
    from loadgen.thresholds import Threshold

_USUAL_MODE = "shai"
_SLICES = 6
"""A slice takes this part of the scenario's time, so that several rounds take a few times as long as the scenario."""

_WARM_UP_SECONDS = 30


class ComparisonError(LoadgenError):
    """What was asked for cannot be compared with mode baseline; the text says why, and what to do."""


def add_options(group: _ArgumentGroup) -> None:
    """Add the options of comparisons."""
    group.add_argument("--member", type=Path, metavar="FILE", help="the pool's member, as JSON (the running demo's)")
    group.add_argument("--rounds", type=int, default=5, help="each measures every mode and a control once (5)")
    group.add_argument(
        "--warm-up",
        type=int,
        default=_WARM_UP_SECONDS,
        metavar="SECONDS",
        help=f"load before the first round: the twins' compilers begin cold ({_WARM_UP_SECONDS})",
    )


def run(scenario: Scenario, judged: Sequence[Threshold], options: Namespace) -> None:
    """Measure, and print the table; an error with status 3 when a threshold is exceeded."""
    if options.host or options.run_time:
        raise ComparisonError(
            "a comparison with mode baseline measures a pool's member (--member FILE) and not --host, "
            "for a time that --size and --rounds say and not --run-time"
        )
    demo = None if options.member else demonstration.find()
    member = options.member or (demo.member if demo else None)
    if member is None:
        raise ComparisonError(
            "a comparison with mode baseline needs the description of a pool's member: name it by --member FILE"
        )
    size = options.size or (demo.size if demo else "quick")
    output = Path(options.results)
    _check_own(output)
    plan = output / "plan.json"
    plan.write_text(json.dumps(_plan(scenario, judged, options, size), indent=2) + "\n")
    wanted = Namespace(
        member=member,
        plan=plan,
        output=output,
        **_announced(options, demo),
        workers_socket=None,
        workers_tls=None,
        fail_on=[str(threshold) for threshold in judged],
    )
    try:
        benchmark.run(wanted, _tell)
    except benchmark.ExceededError:
        _print(output, options.output)
        raise
    _print(output, options.output)
    check(json.loads((output / "results.json").read_text()), options.warm_up)


def _announced(options: Namespace, demo: Demo | None) -> dict[str, Any]:
    """Return the options that say where metrics are announced."""
    found = Discovery.of(options) or (demo.discovery if demo else None)
    return found.options if found else {"scrape": None}


def _check_own(output: Path) -> None:
    """Raise ComparisonError for a directory in which others can put links in the place of files."""
    found = output.stat()
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ComparisonError(
            f"{output}: other users can write there, and have results written through links of theirs: "
            "give a directory of your own with --results"
        )


def check(results: Mapping[str, Any], warm_up: int) -> None:
    """Raise ComparisonError when a mode seems to save CPU time: its interval of the overhead is below zero.

    Then mode baseline's twins had not warmed up as the member has. Without an interval (one round) nothing is refused.
    """
    for entry in results["throughput"]:
        for mode in (name for name in entry if name not in {"sessionLength", BASELINE, CONTROL}):
            high = entry[mode]["cpuOverhead"].get("high")
            if high is not None and high < 0:
                raise ComparisonError(
                    f"not to be believed: mode {mode} seems to take less CPU time than mode baseline (the whole "
                    f"interval is below zero), whose twins have served less than "
                    f"the member and are compiled less; repeat it with --warm-up {4 * warm_up}"
                )


def _plan(scenario: Scenario, judged: Sequence[Threshold], options: Namespace, size: str) -> dict[str, object]:
    """Return the plan, as a Benchmark's spec would have it. The modes are those of which a threshold speaks."""
    modes = {value for threshold in judged for name, value in threshold.labels if name == "mode"} or {_USUAL_MODE}
    seconds = max(1, scenario.seconds[size] // _SLICES)
    return {
        "name": scenario.name,
        "scenario": scenario.name,
        "modes": [BASELINE, *sorted(modes - {BASELINE})],
        "rounds": options.rounds,
        "sliceSeconds": seconds,
        "concurrentUsers": options.users,
        "warmUpSeconds": options.warm_up,
        "workers": {"count": options.workers},
        "seed": options.seed,
    }


def _tell(text: str) -> None:
    over = sys.stderr.isatty()
    print(f"\r\033[K{text}" if over else text, end="" if over else "\n", file=sys.stderr, flush=True)


def _print(output: Path, form: str) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print((output / ("results.json" if form == "json" else "table.txt")).read_text(), end="")
