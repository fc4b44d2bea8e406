# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for conditions and looking at processes, in the tests of providers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shai_operator.providers.interface import Progress


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
