# SPDX-License-Identifier: BSD-2-Clause
"""Files that are generated and checked in: writes them, or checks that they are up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]


def main(
    files: Mapping[Path, str], source: str, command: str, about: str | None, arguments: Sequence[str] | None
) -> int:
    """Write ``files``, contents by path; with --check print which are not up to date, and return 1 if there are any.

    ``source`` is the folder that they are generated from, ``command`` the module that does it, ``about`` its help.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file is not up to date")
    options = parser.parse_args(arguments)
    stale = {path: text for path, text in files.items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        shown = path.relative_to(ROOT)
        if options.check:
            print(f"{shown} is not what {source} says: run .venv/bin/python -m {command}", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {shown}")
    return 1 if stale and options.check else 0
