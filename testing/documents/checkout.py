# SPDX-License-Identifier: BSD-2-Clause
"""A folder in which nothing ran before: the project's sources, and what `make build` makes of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from testing.documents.pages import ROOT, sources

if TYPE_CHECKING:
    from pathlib import Path


def make(directory: Path) -> None:
    """Fill ``directory``, which must not exist, from this checkout. Times are kept, so that nothing is built anew."""
    for name in sources():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    shutil.copytree(ROOT / "build", directory / "build", symlinks=True)
    (directory / ".venv").symlink_to(ROOT / ".venv")
