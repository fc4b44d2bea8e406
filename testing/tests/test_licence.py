# SPDX-License-Identifier: BSD-2-Clause
"""Every source file names its licence."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINE = "SPDX-License-Identifier: BSD-2-Clause"
_HEAD_LINES = 5

_WITHOUT_COMMENTS = {".json", ".png", ".sum", ".mod", ".md", ".golden", ".txt"}
"""Formats without comments, or that a tool writes, and prose, which LICENSE covers."""
_OTHERS = {"LICENSE", "requirements.lock", "pkg-descr", "pkg-message", "pkg-plist"}
"""The last three are texts of FreeBSD's ports, which have no comments."""
_INPUTS = ("testdata", "seeds", "golden", "goldens")
"""Folders of files that tests read byte by byte."""


def sources() -> list[Path]:
    """Return the files that git tracks and that can have a comment."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name]
    return [
        path
        for path in paths
        if path.suffix not in _WITHOUT_COMMENTS
        and path.name not in _OTHERS
        and not set(path.parts) & set(_INPUTS)
        and (ROOT / path).is_file()
        and (ROOT / path).stat().st_size > 0
    ]


def test_every_source_file_has_the_line() -> None:
    found = sources()
    assert len(found) > 500, "git lists too few files to believe"
    without = []
    for path in found:
        with (ROOT / path).open(encoding="utf-8", errors="replace") as file:
            if not any(LINE in line for line, _ in zip(file, range(_HEAD_LINES), strict=False)):
                without.append(str(path))
    assert not without, f"put a comment with {LINE!r} into the first {_HEAD_LINES} lines of {without}"
