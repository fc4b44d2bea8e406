# SPDX-License-Identifier: BSD-2-Clause
"""progress.json: the progress of a measurement, for the program that started it."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class State(StrEnum):
    """The state of a measurement."""

    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class StatusFile:
    """Replaces the file atomically at each change, so that a reader always sees a complete one.

    ``listener`` is told the progress, too.

    Fields: ``state``, ``done`` and ``total`` (slices), ``message``, ``elapsed`` (seconds).
    """

    def __init__(self, path: Path, listener: Callable[[str], None] | None = None) -> None:
        self._listener = listener
        self.total = 0
        self._path = path
        self._started = time.monotonic()
        self._done = 0

    def tell(self, message: str, done: int | None = None) -> None:
        """Set the message, and the number of finished slices if it has changed."""
        self._done = self._done if done is None else done
        self._write(State.RUNNING, message)
        if self._listener is not None:
            self._listener(f"{self._done} of {self.total} slices; {message}")

    def end(self, state: State, message: str) -> None:
        """Write the final state."""
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
