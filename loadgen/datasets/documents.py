# SPDX-License-Identifier: BSD-2-Clause
"""The documents of a data directory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from loadgen.datasets import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER_LINES = 10
_LONGEST_LINE = 4096


def titled(data: Path, folder: str) -> Iterator[tuple[Path, str]]:
    """Yield the documents in a folder of a data directory that have a title, with it, in the order of their names."""
    for path in sorted((data / folder).glob("**/*.txt")):
        with (
            files.opened(data, str(path.relative_to(data))) as content,
            io.TextIOWrapper(content, encoding="utf-8", errors="replace") as file,
        ):
            for _ in range(_HEADER_LINES):
                name, _, title = file.readline(_LONGEST_LINE).strip().partition(": ")
                if name == "title" and title:
                    yield path, title
                    break
