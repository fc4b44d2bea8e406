# SPDX-License-Identifier: BSD-2-Clause
"""Writes the dashboards from the query table.

python -m dashboards generate [--check]
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from dashboards import generate

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command. Return an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m dashboards", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    generating = commands.add_parser("generate", help="write every generated file")
    generating.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is not up to date")
    options = parser.parse_args(arguments)
    return generate.write(check=options.check)


if __name__ == "__main__":
    sys.exit(main())
