# SPDX-License-Identifier: BSD-2-Clause
"""What a pool's virtual machines boot from: checks and lists descriptions, renders the files of a first boot."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from images import commands
from images.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit status is 0 after success, 1 after a failure, 130 after an interrupt."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except ImageError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m images", description=__doc__, epilog="Exit status: 0 success, 1 failure, 2 wrong usage."
    )
    added = parser.add_subparsers(dest="command", required=True)
    check = added.add_parser("check", help="check every description against the schema")
    commands.add_output(check)
    check.set_defaults(run=commands.check)
    shown = added.add_parser("list", help="list the descriptions")
    commands.add_output(shown)
    shown.set_defaults(run=commands.show)
    render = added.add_parser(
        "render", help="render user-data, meta-data and network-config of a pool's virtual machine"
    )
    commands.add_pool(render)
    commands.add_output(render)
    render.add_argument("--into", type=Path, metavar="DIR", help="directory for the files (default: they are printed)")
    render.set_defaults(run=commands.write)
    return parser


if __name__ == "__main__":
    sys.exit(main())
