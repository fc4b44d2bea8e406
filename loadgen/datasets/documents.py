# SPDX-License-Identifier: BSD-2-Clause
"""The documents of a data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER_LINES = 10


def titled(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the documents in a folder that have a title, and their titles, in the order of their names."""
    for path in sorted(folder.glob("**/*.txt")):
        with path.open(encoding="utf-8", errors="replace") as file:
            for _ in range(_HEADER_LINES):
                name, _, title = file.readline().strip().partition(": ")
                if name == "title" and title:
                    yield path, title
                    break
