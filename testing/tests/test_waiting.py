# SPDX-License-Identifier: BSD-2-Clause
"""Time limits that a busy machine prolongs, up to a maximum."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from testing import waiting
from testing.waiting import LONGEST_SECONDS, Limit


@dataclass
class Machine:
    """A simulated machine: its clock, and processes that wait for a processor."""

    now: float = 1000.0
    stalled: float = 400.0

    def limit(self, seconds: float) -> Limit:
        return Limit(seconds, lambda: self.now, lambda: self.stalled)

    def passes(self, seconds: float, *, busy: float = 0.0) -> None:
        self.now += seconds
        self.stalled += seconds * busy


def test_on_an_idle_machine_a_limit_is_what_it_says() -> None:
    machine = Machine()
    limit = machine.limit(30)
    machine.passes(30)
    assert not limit.reached()
    machine.passes(1)
    assert limit.reached()


def test_on_a_busy_machine_it_is_longer() -> None:
    machine = Machine()
    limit = machine.limit(30)
    machine.passes(290, busy=0.9)
    assert not limit.reached()
    machine.passes(20, busy=0.9)
    assert limit.reached()


def test_on_a_machine_that_stays_busy_it_ends_too() -> None:
    machine = Machine()
    limit = machine.limit(30)
    machine.passes(LONGEST_SECONDS, busy=1.0)
    assert not limit.reached()
    machine.passes(31, busy=1.0)
    assert limit.reached()


def test_the_maximum_can_be_less() -> None:
    machine = Machine()
    limit = Limit(30, lambda: machine.now, lambda: machine.stalled, longest=60)
    machine.passes(90, busy=1.0)
    assert not limit.reached()
    machine.passes(1, busy=1.0)
    assert limit.reached()


def test_what_takes_long_is_looked_at_less_often() -> None:
    machine = Machine()
    limit = machine.limit(30)
    pauses = []
    for seconds in (0, 4, 56):
        machine.passes(seconds)
        pauses.append(limit.pause(0.1))
    assert pauses == [0.1, 0.2, 0.5]


def test_the_kernel_says_how_long_processes_have_waited() -> None:
    first = waiting.stalled_seconds()
    assert waiting.stalled_seconds() >= first >= 0


def test_what_was_waited_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0)
    with pytest.raises(AssertionError, match=r"^not within 0 s with a free processor, \d+ s in all: pigs fly$"):
        waiting.until(lambda: False, "pigs fly", 0)


def test_what_the_condition_found_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0)
    tries = iter(["", "", "found"])
    assert waiting.until(lambda: next(tries), "something") == "found"
