# SPDX-License-Identifier: BSD-2-Clause
"""Writes the dashboards from the query table, brings them into a Grafana, and verifies their queries."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from dashboards import generate, importing
from dashboards.verifying import command as verifying

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command. Return an exit code."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    generating = commands.add_parser("generate", help="write every generated file")
    generating.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is not up to date")
    generating.set_defaults(run=lambda options: generate.write(check=options.check))
    bring = commands.add_parser(
        "import",
        help="put all boards into a running Grafana",
        description=f"Puts all boards into a folder of a running Grafana, in place of older ones. {importing.TOKEN} is "
        "the token of a service account with the role Editor.",
    )
    importing.add_options(bring)
    bring.set_defaults(run=importing.run)
    verify = commands.add_parser(
        "verify",
        help="run the queries of all panels against a Prometheus",
        description="Runs the queries of all panels against a Prometheus. Exit 1 if a panel shows nothing, or nothing "
        "but zero, and docs/dashboards.md does not say why.",
    )
    verifying.add_options(verify)
    verify.set_defaults(run=verifying.run)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
