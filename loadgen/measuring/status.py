# SPDX-License-Identifier: BSD-2-Clause
"""progress.json: the progress of a measurement, for the program that started it.

That one shows it to people who may not see users' data. So it has none.
"""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError

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
        self._last = "it starts"

    def tell(self, message: str, done: int | None = None) -> None:
        """Set the message, and the number of finished slices if it has changed."""
        self._done = self._done if done is None else done
        self._last = message
        self._write(State.RUNNING, message)
        if self._listener is not None:
            self._listener(f"{self._done} of {self.total} slices; {message}")

    def end(self, state: State, message: str) -> None:
        """Write the final state."""
        self._write(state, message)

    def fail(self, error: Exception) -> None:
        """Write that the measurement has failed, and what of the cause is for everybody."""
        public = error.public if isinstance(error, LoadgenError) else ""
        self._write(State.FAILED, public or f"failed after this step: {self._last}")

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
