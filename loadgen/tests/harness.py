# SPDX-License-Identifier: BSD-2-Clause
"""Stand-ins for programs, and a search for processes that remain after a run."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAKE = f'exec "{sys.executable}" -m loadgen.tests.fake_shai'
MARK = "SHAI_DEMO_TEST"
"""Environment variable that marks every process of a test's run."""


def script(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def left_over(value: str) -> dict[int, str]:
    """Return the command lines of live processes with the mark, by process id."""
    mark = f"{MARK}={value}".encode()
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found
