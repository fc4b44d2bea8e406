# SPDX-License-Identifier: BSD-2-Clause
"""Measurements by their commands, in installations of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.tests.harness import MARK, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def output() -> Iterator[Path]:
    """Make a directory that tasks can search, which run as other users."""
    made = Path(tempfile.mkdtemp(prefix="shai-measured-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def measure(output: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command of the load generator that writes to a directory, the fixture's or one beneath it."""

    def run(command: str, *options: str, to: Path = output) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "loadgen", command, "--output", str(to), *options],
            cwd=ROOT, env={**os.environ, MARK: str(output)}, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    return run
