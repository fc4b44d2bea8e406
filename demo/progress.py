# SPDX-License-Identifier: BSD-2-Clause
"""Progress of numbered steps: a spinner on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import contextlib
import textwrap
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

_INDENT = " " * 6
_SPINNER_WIDTH = 2
_INTERVAL_SECONDS = 5.0
"""Time between two lines about a step; changes in between are not printed."""


@dataclass
class Step:
    """A step in progress."""

    tell: Callable[[str], None]
    """Reports progress; the same text may be reported any number of times."""
    outcome: str = "done"
    """Printed when the step has ended."""


class Progress:
    """Announces the steps of a run of ``total`` steps."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self._total = total

    @contextlib.contextmanager
    def step(self, number: int, name: str) -> Iterator[Step]:
        """Announce a step, then report how it ended and how long it took."""
        self._line(f"[{number}/{self._total}] {name}")
        started = time.monotonic()
        outcome = "not done"
        try:
            with self._spinner() if self.console.is_terminal else self._changes() as tell:
                step = Step(tell)
                yield step
            outcome = step.outcome
        finally:
            self._indented(f"{outcome} ({time.monotonic() - started:.1f} s)")

    @contextlib.contextmanager
    def _spinner(self) -> Iterator[Callable[[str], None]]:
        with self.console.status("") as status:
            yield lambda text: status.update(self._cut(text))

    @contextlib.contextmanager
    def _changes(self) -> Iterator[Callable[[str], None]]:
        printed, since = "", time.monotonic()

        def tell(text: str) -> None:
            nonlocal printed, since
            now = time.monotonic()
            if text != printed and now - since >= _INTERVAL_SECONDS:
                printed, since = text, now
                self._indented(text)

        yield tell

    def _cut(self, text: str) -> Text:
        """Shorten a text to the space beside the spinner: of two lines, one would remain on the screen."""
        width = self.console.width - _SPINNER_WIDTH
        return Text(text if len(text) <= width else f"{text[: width - 1]}…")

    def _indented(self, text: str) -> None:
        self._line(textwrap.fill(text, self.console.width, initial_indent=_INDENT, subsequent_indent=_INDENT))

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)
