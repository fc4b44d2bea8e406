# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures: a directory that tasks may enter, and the monitor of "diaries" in it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from monitor.tests.diaries import Diaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def start() -> Iterator[Callable[..., Diaries]]:
    """Return a function that starts a monitor of "diaries", analysed; it ends with the test."""
    started: list[Diaries] = []

    def one(**content: Any) -> Diaries:
        # Tasks are other users, and cannot enter pytest's directories.
        base = Path(tempfile.mkdtemp(prefix="shai-", dir="/var/tmp"))
        base.chmod(0o755)
        diaries = Diaries(base, **content)
        started.append(diaries)
        diaries.prepare()
        return diaries

    yield one
    for diaries in started:
        diaries.end()
        shutil.rmtree(diaries.base)
