# SPDX-License-Identifier: BSD-2-Clause
"""Progress lines: a spinner on a terminal, plain lines with times anywhere else."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

_PLAIN_INTERVAL_SECONDS = 10.0


class Progress:
    """Announces the numbered steps of a run of ``total`` steps."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self._total = total

    @contextlib.contextmanager
    def step(self, number: int, text: str) -> Iterator[Callable[[str], None]]:
        """Announce a step and, when it is done, how long it took; yields what takes its details."""
        label = f"[{number}/{self._total}] {text}"
        started = time.monotonic()
        last = started
        detail = ""
        if not self.console.is_terminal:
            self._line(f"{label} …")

        with contextlib.ExitStack() as stack:
            status = stack.enter_context(self.console.status(escape(label))) if self.console.is_terminal else None

            def tell(text: str) -> None:
                nonlocal detail, last
                detail = text
                now = time.monotonic()
                if status is not None:
                    status.update(escape(f"{label}: {text}"))
                elif now - last > _PLAIN_INTERVAL_SECONDS:
                    last = now
                    self._line(f"{label}: {text}")

            yield tell
        self._line(f"{label}: {detail or 'done'} ({time.monotonic() - started:.1f} s)")

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)
