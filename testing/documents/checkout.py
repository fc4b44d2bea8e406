# SPDX-License-Identifier: BSD-2-Clause
"""A folder in which nothing ran before: the project's sources and the results of `make build`."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testing.documents.pages import ROOT, sources

if TYPE_CHECKING:
    from collections.abc import Iterator

_READABLE = 0o755


@contextmanager
def made() -> Iterator[Path]:
    """Copy this checkout. Times are kept, so that nothing is built again.

    All users can read it, as with most clones.
    """
    with tempfile.TemporaryDirectory(prefix="shai-checkout-") as directory:
        Path(directory).chmod(_READABLE)
        copy = Path(directory) / "shai"
        for name in sources():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
        shutil.copytree(ROOT / "build", copy / "build", symlinks=True)
        (copy / ".venv").symlink_to(ROOT / ".venv")
        yield copy
