# SPDX-License-Identifier: BSD-2-Clause
"""Real members on this machine: an image of the built programs, and a place for pools."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers import authority, images
from shai_operator.providers.interface import Image, Pool
from testing.ports import free_port
from tests.providers.support import arguments, processes_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shai_operator.providers.authority import Identity

BUILT = Path(__file__).parents[3] / "build"


@dataclass(frozen=True)
class Site:
    """The place of a test's pool. ``base`` is short enough for sockets below it."""

    base: Path
    pool: Pool
    port: int
    authority: Identity

    @property
    def directory(self) -> Path:
        """The pool's directory."""
        return self.base / "pool"

    def image(self, name: str = "default", **files: str) -> Image:
        """Make an image of the built programs and these additional files."""
        directory = self.base / "images" / name
        for required in images.REQUIRED:
            (directory / required).parent.mkdir(parents=True)
            shutil.copy2(BUILT / required, directory / required)
        for file, text in files.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text)
        return images.read(self.base / "images", name)


@pytest.fixture
def site() -> Iterator[Site]:
    base = Path(tempfile.mkdtemp(prefix="shai-"))
    # Addresses of its own, in case another test runs at the same time.
    network = f"127.{random.randint(16, 250)}.{random.randint(0, 255)}.0/28"
    try:
        yield Site(base, Pool("t", network), free_port(), authority.create())
    finally:
        # Processes of a failed test; supervisors are killed first, because they would restart the others.
        for left in [*processes_with("supervisord.conf"), *processes_with(str(base))]:
            if str(base) in arguments(left):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
        shutil.rmtree(base)
