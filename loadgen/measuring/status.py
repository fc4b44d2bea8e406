# SPDX-License-Identifier: BSD-2-Clause
"""progress.json: how far a measurement is, for whoever has started it."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class State(StrEnum):
    """How a measurement stands."""

    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class StatusFile:
    """Replaces the file in one step at each change, so that a reader never sees half of it.

    Fields: ``state``, ``done`` and ``total`` (slices), ``message``, ``elapsed`` (seconds).
    """

    def __init__(self, path: Path) -> None:
        self.total = 0
        self._path = path
        self._started = time.monotonic()
        self._done = 0

    def tell(self, message: str, done: int | None = None) -> None:
        """Say what goes on, and how many slices are done when that has changed."""
        self._done = self._done if done is None else done
        self._write(State.RUNNING, message)

    def end(self, state: State, message: str) -> None:
        """Say how it ended."""
        self._write(state, message)

    def _write(self, state: State, message: str) -> None:
        found = {
            "state": str(state),
            "done": self._done,
            "total": self.total,
            "message": message,
            "elapsed": round(time.monotonic() - self._started),
        }
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(found) + "\n")
        temporary.replace(self._path)
