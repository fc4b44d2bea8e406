# SPDX-License-Identifier: BSD-2-Clause
"""The lines of a step where output is no terminal, with a simulated clock."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from demo import progress
from demo.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def told(clock: Clock, *texts: str, seconds: float = 6.0) -> list[str]:
    """Return the lines of a step that gets a text every few seconds."""
    output = io.StringIO()
    with Progress(Console(file=output, width=100), 3).step(2, "install a member") as step:
        for text in texts:
            clock.now += seconds
            step.tell(text)
    return output.getvalue().splitlines()


def test_a_line_is_printed_for_a_change_and_not_for_a_repetition(clock: Clock) -> None:
    assert told(clock, "task 1", "task 1", "task 1", "task 2", "task 2") == [
        "[2/3] install a member",
        "      task 1",
        "      task 2",
        "      done (30.0 s)",
    ]


def test_fast_changes_are_told_by_the_latest(clock: Clock) -> None:
    texts = [f"slice {number}" for number in range(1, 13)]
    assert told(clock, *texts, seconds=1.0)[1:] == ["      slice 5", "      slice 10", "      done (12.0 s)"]


def test_what_is_told_is_text_and_no_markup(clock: Clock) -> None:
    assert told(clock, "[bold] [1, 2]")[1] == "      [bold] [1, 2]"


def test_a_step_that_fails_says_so_and_for_how_long(clock: Clock) -> None:
    output = io.StringIO()
    step = Progress(Console(file=output, width=100), 3).step(1, "wait")
    step.__enter__().tell("half of it")
    clock.now = 2.0
    assert not step.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert output.getvalue().splitlines()[-1] == "      not done (2.0 s)"


def test_a_terminal_gets_a_spinner_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal gets none
    output = io.StringIO()
    console = Console(file=output, width=40, force_terminal=True, color_system=None)
    with Progress(console, 3).step(2, "install a member") as step:
        step.tell("task " * 20)
        step.outcome = "installed"
    drawn = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part) for part in re.split(r"[\r\n]", output.getvalue())]
    assert drawn[0] == "[2/3] install a member"
    assert max(map(len, drawn)) == 40
    assert output.getvalue().count("\x1b[1A") == 1, "nothing of the spinner is left behind"
    assert re.fullmatch(r" {6}installed \(\d+\.\d s\) *", drawn[-2])
