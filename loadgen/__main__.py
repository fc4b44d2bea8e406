# SPDX-License-Identifier: BSD-2-Clause
"""Drives Sys-E with load, measures what enforcement costs, and verifies that policies hold."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from loadgen.datasets import corpus
from loadgen.driving import reference
from loadgen.errors import LoadgenError
from loadgen.measuring import benchmark, fast, ingest, scenario, sessions
from loadgen.results import tables
from loadgen.stacks import light
from loadgen.verifying import verification

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "benchmark": (benchmark, "measure what enforcement costs on a pool member"),
    "dataset": (corpus, "make documents, people, facts and queries for Sys-E"),
    "fast": (fast, "measure what enforcement costs with a search engine of known cost, in installations of its own"),
    "ingest": (ingest, "measure what documents that come in do to searches, in an installation of its own"),
    "light": (light, "write manifests of Sys-E with its fast engine"),
    "metrics": (reference, "print the metrics of the load generator"),
    "scenario": (scenario, "run a scenario of load on the running demo, or list the scenarios"),
    "sessions": (sessions, "measure what a session costs, in installations of its own"),
    "table": (tables, "print the overhead table of a results.json"),
    "verify": (verification, "verify on a pool member that policies hold; attempts a leak"),
}
_BY_HAND = """
A scenario with Locust's own options and web page:
  .venv/bin/locust -f loadgen/scenarios/spike.py
"""
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 after success, 1 after a failure, 130 after an interrupt."""
    parser = argparse.ArgumentParser(
        prog="python -m loadgen",
        description=__doc__,
        epilog=_commands() + _BY_HAND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, help="one of those below; each has a --help of its own"
    )
    for name, (module, _) in COMMANDS.items():
        command = commands.add_parser(
            name, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(command)
    options = parser.parse_args(arguments)
    try:
        COMMANDS[options.command][0].run(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (LoadgenError, OSError) as error:
        print(f"loadgen {options.command}: {error}", file=sys.stderr)
        return error.exit_status if isinstance(error, LoadgenError) else 1
    return 0


def _commands() -> str:
    width = max(map(len, COMMANDS))
    return "commands:\n" + "".join(f"  {name:{width}}  {about}\n" for name, (_, about) in COMMANDS.items())


if __name__ == "__main__":
    sys.exit(main())
