#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fails when compiled files depend on each other in a circle.

scripts/link_circles.py OBJECT...
"""

from __future__ import annotations

import graphlib
import subprocess
import sys
from pathlib import Path


def symbols(path: str) -> tuple[set[str], set[str]]:
    """Return the global symbols that an object defines, and those that it needs."""
    listing = subprocess.run(["nm", "--extern-only", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    defined = {row[-1] for row in rows if row[-2] != "U"}
    return defined, {row[-1] for row in rows if row[-2] == "U"}


def main(paths: list[str]) -> int:
    """Return 0 when there is no circle, 1 when there is one, 2 when there are no objects."""
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    read = {path: symbols(path) for path in paths}
    owner = {name: path for path, (defined, _) in read.items() for name in defined}
    needs = {path: {owner[name] for name in needed if name in owner} for path, (_, needed) in read.items()}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
        print(f"a circle: {' needs '.join(Path(path).stem for path in reversed(circle))}", file=sys.stderr)
        for path, used in zip(reversed(circle), list(reversed(circle))[1:], strict=False):
            names = sorted(name for name in read[path][1] if owner.get(name) == used)
            print(f"  {Path(path).stem} needs {', '.join(names)} of {Path(used).stem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
