# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for conditions and looking at processes, in the tests of providers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from testing.waiting import Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.providers.interface import Progress

PATIENCE_SECONDS = 60.0


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; AssertionError with ``what`` when it does not become true."""
    limit = Limit(PATIENCE_SECONDS)
    while not condition():
        assert not limit.reached(), f"not within {limit}: {what}"
        await asyncio.sleep(0.05)


def arguments(process: int) -> str:
    """Return a process's arguments; empty when it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def processes_with(text: str) -> list[int]:
    """List the processes, other than this one, with a text among their arguments."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [number for number in numbers if number != os.getpid() and text in arguments(number)]


def quiet(_: Progress) -> None:
    """Ignore progress."""
