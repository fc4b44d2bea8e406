# SPDX-License-Identifier: BSD-2-Clause
"""python -m dashboards verify."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from dashboards.answers import is_address, printable
from dashboards.boards import ALL
from dashboards.model import VARIABLES
from dashboards.verifying.judgement import State, verdicts
from dashboards.verifying.prometheus import Prometheus, PrometheusError, Scope

if TYPE_CHECKING:
    from dashboards.verifying.judgement import Verdict

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float:
    """Return a duration such as 90s, 20m, 1h or 2d in seconds; ArgumentTypeError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]*)([smhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: use a number and s, m, h or d, such as 20m")
    return float(int(found[1]) * _UNITS[found[2]])


def choice(text: str) -> tuple[str, str]:
    """Return a variable and its value; ArgumentTypeError for anything else."""
    name, equals, value = text.partition("=")
    if not equals or name not in VARIABLES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no choice: use VARIABLE=VALUE with one of {', '.join(VARIABLES)}"
        )
    return name, value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--prometheus", required=True, metavar="URL", help="a running Prometheus with data")
    parser.add_argument(
        "--last", type=duration, default="1h", metavar="TIME", help="the range, up to now (%(default)s)"
    )
    parser.add_argument(
        "--end", type=float, metavar="SECONDS", help="the end of the range, in seconds since 1970 (now)"
    )
    parser.add_argument(
        "--rate-interval", type=duration, default="1m", metavar="TIME", help="Grafana's $__rate_interval (%(default)s)"
    )
    parser.add_argument(
        "--choose", type=choice, action="append", default=[], metavar="VARIABLE=VALUE", help="a variable's value"
    )
    parser.add_argument("--output", choices=["text", "json"], default="text", help="how to print (%(default)s)")


def _line(verdict: Verdict) -> str:
    name = f"{verdict.board}/{verdict.panel}"
    if verdict.state == State.DATA:
        return f"{name:45} data"
    why = f" (known: {verdict.reason})" if verdict.good else ""
    return f"{name:45} {verdict.state.upper()}{why}: {printable(verdict.text)}"


def run(options: argparse.Namespace) -> int:
    """Verify all panels. Return an exit code."""
    if not is_address(options.prometheus):
        print(f"error: {options.prometheus!r} is no address: use http://HOST:PORT or https://HOST", file=sys.stderr)
        return 1
    scope = Scope(options.end or time.time(), options.last, options.rate_interval, dict(options.choose))
    found = []
    try:
        for verdict in verdicts(ALL, Prometheus(options.prometheus), scope):
            found.append(verdict)
            if options.output == "text":
                print(_line(verdict), flush=True)
    except PrometheusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    bad = [verdict for verdict in found if not verdict.good]
    if options.output == "json":
        print(json.dumps([asdict(verdict) | {"good": verdict.good} for verdict in found], indent=2))
    else:
        shown = sum(verdict.state == State.DATA for verdict in found)
        print(f"{shown} of {len(found)} panels show data, {len(found) - shown - len(bad)} need not, {len(bad)} should")
    return 1 if bad else 0
