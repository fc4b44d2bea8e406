# SPDX-License-Identifier: BSD-2-Clause
"""The command line: python -m testing.scaling --help."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testing.cluster import ROOT
from testing.scaling.report import quantile, table
from testing.scaling.worlds import accepted, in_force, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testing.scaling.report import Step
    from testing.scaling.worlds import Changes

_QUICK = (60, 6)
_SLOPE = ((500, 50), (5000, 200))
_MEMBER_DEFINITIONS = (50, 5)
_SHARES = {"p50": 0.5, "p99": 0.99}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and store the results."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that API server, operator and stand-ins are ended
    steps: list[Step] = []
    changes: list[Changes] = []
    with tempfile.TemporaryDirectory(prefix="shai-scale-", dir="/var/tmp") as base:
        for repetition in range(options.repetitions):
            for number, size in enumerate(options.sizes):
                name = f"{size[0]} policies, {size[1]} pipelines"
                progress(f"{name}: repetition {repetition + 1} of {options.repetitions}")
                directory = Path(base) / f"accepted-{repetition}-{number}"
                steps += accepted(directory, name, size, pool_first=True, bare=True)
        if options.members:
            name = f"{options.members} members"
            progress(f"{name}: stand-ins, {_MEMBER_DEFINITIONS[0]} policies, {_MEMBER_DEFINITIONS[1]} pipelines")
            more, found = in_force(Path(base) / "members", name, _MEMBER_DEFINITIONS, options.members, options.changes)
            steps += more
            changes.append(found)
    print(_summary(steps, changes))
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(json.dumps(_written(steps, changes), indent=1) + "\n")
    progress(f"stored in {options.report}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testing.scaling", description="Measure the operator at scale.")
    parser.add_argument("--sizes", type=_size, nargs="+", default=[_SLOPE[0]], metavar="POLICIES/PIPELINES")
    parser.add_argument("--slope", action="store_true", help="measure 5000/200, too: 20 minutes on two processors")
    parser.add_argument("--members", type=int, default=100, help="of the pool with stand-ins; 0: do not measure it")
    parser.add_argument("--changes", type=int, default=20, help="of a policy of that pool, one after the other")
    parser.add_argument("--repetitions", type=int, default=1, help="of the acceptance of definitions")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute, no figures to compare")
    parser.add_argument("--report", type=Path, default=ROOT / "out" / "bench" / "operator.json")
    options = parser.parse_args(arguments)
    if options.quick:
        options.sizes, options.members, options.changes = [_QUICK], 5, 3
    elif options.slope:
        options.sizes = list(_SLOPE)
    return options


def _size(text: str) -> tuple[int, int]:
    policies, _, pipelines = text.partition("/")
    if not (policies.isdecimal() and pipelines.isdecimal() and 0 < int(pipelines) <= int(policies)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected POLICIES/PIPELINES, such as 500/50")
    return int(policies), int(pipelines)


def _summary(steps: Sequence[Step], changes: Sequence[Changes]) -> str:
    lines = [f"CPU in seconds, until the operator is quiet again; MB: the most that it has had\n{table(steps)}"]
    for found in changes:
        shown = ", ".join(f"{called} {quantile(found.seconds, share)}" for called, share in _SHARES.items())
        lines.append(
            f"from kubectl apply to in force on {found.members} members: {shown}, {len(found.seconds)} changes"
        )
    return "\n\n".join(lines)


def _written(steps: Sequence[Step], changes: Sequence[Changes]) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "steps": [step.written() for step in steps],
        "changes": [
            {
                **asdict(found),
                **{called: asdict(quantile(found.seconds, share)) for called, share in _SHARES.items()},
            }
            for found in changes
        ],
    }


if __name__ == "__main__":
    main()
