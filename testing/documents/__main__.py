# SPDX-License-Identifier: BSD-2-Clause
"""Executes the commands of one page, as a reader who has only cloned the project and built it.

python -m testing.documents docs/guide.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testing.documents import checkout, commands, isolation, pages
from testing.documents.execution import CommandError, execute

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute a page; the exit status is 0 if all commands did what the page says, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", help="path from the top folder")
    parser.add_argument("--checkout", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.checkout is None:
        return _isolated(options.page)
    try:
        execute(options.page, commands.of(pages.load(options.page)), options.checkout, _tell)
    except (CommandError, commands.PageError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _isolated(page: str) -> int:
    with checkout.made() as folder:
        again = [sys.executable, "-m", "testing.documents", page, "--checkout", str(folder)]
        return isolation.run(again, directory=pages.ROOT)


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
