# SPDX-License-Identifier: BSD-2-Clause
"""Runs the slices of a plan against running stacks, and measures the cost of each slice."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from loadgen.driving.orders import Order
from loadgen.errors import LoadgenError
from loadgen.plan import BARE, KNOWN_MODES, sessions
from loadgen.results.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.driving.orders import Outcome
    from loadgen.driving.protocol import FrontEnd
    from loadgen.plan import Plan

SETTLE_SECONDS = 0.3
"""Time after the load of a slice in which the last sessions are reset; it counts as a part of the slice."""

LEAD_SECONDS = 0.5
"""Time of load, which is not measured, after a stack was switched to another mode."""

MAXIMUM_FAILURES = 0.01
"""Share of failed requests above which a slice is invalid."""


class MeasurementError(LoadgenError):
    """A slice is invalid; the text says which and why."""


class Load(Protocol):
    """Runs an order; implemented by `loadgen.driving.orders.Driver`."""

    def run(self, order: Order) -> Outcome:
        """Run one slice of load."""


class Stack(Protocol):
    """A running pipeline that serves one or more modes."""

    @property
    def front_end(self) -> FrontEnd:
        """The front end as its users know it."""

    def enter(self, mode: str) -> bool:
        """Switch to ``mode``, which holds for sessions that start from now on; return whether it was another one."""

    def check(self) -> None:
        """Raise LoadgenError when another process has switched the mode."""

    def interceptions(self) -> dict[str, int]:
        """Return the total number of the monitor's interceptions, by kind."""

    def tasks(self) -> dict[str, int]:
        """Return the process ids of its running tasks by name."""

    def cpu(self, tasks: Mapping[str, int]) -> dict[str, int]:
        """Return the CPU time so far in nanoseconds, by process."""


@dataclass(frozen=True)
class Turn:
    """One slice to be run."""

    round: int
    order: int
    mode: str
    """What is measured: a key of the meter's stacks."""
    session_length: int
    seed: int
    people: str = ""
    results: int = 10


def schedule(plan: Plan) -> Iterator[Turn]:
    """Yield all slices: lengths as blocks in each round, modes and control in random order within a block.

    The modes of a block share a seed, so that they have the same users and queries.
    """
    source = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
    order = 0
    for number in range(plan.rounds):
        for length in plan.session_lengths:
            slice_seed = source.randrange(1 << 31)
            for mode in source.sample(plan.series, len(plan.series)):
                yield Turn(number, order, mode, length, slice_seed)
                order += 1


class Meter:
    """Measures slices.

    ``stacks`` has the stack for each mode, and for what else is compared. What is no mode has a stack of its own, which
    stays in the mode in which it was started.
    """

    def __init__(self, load: Load, stacks: Mapping[str, Stack], plan: Plan) -> None:
        self._load = load
        self._stacks = stacks
        self._plan = plan

    def warm_up(self) -> None:
        """Run every mode without recording it, so that compilers and caches are warm.

        Each stack gets the plan's whole time, divided among its modes: a stack with less time would be slower only
        because its compiler had done less.
        """
        stacks = list(self._stacks.values())
        for mode, stack in self._stacks.items():
            seconds = self._plan.warm_up_seconds / stacks.count(stack)
            self._switch(mode)
            to, users = stack.front_end, self._plan.concurrent_users
            order = Order(to.url, to.pipeline, to.service, 8, seconds, users, seed=0, signed=to.signed)
            order = replace(order, scenario=self._plan.scenario)
            believe(self._load.run(order), f"warming up mode {mode}")

    def enter(self, measured: str) -> None:
        """Switch the stack of what is measured to its mode, and let it make workers for the mode.

        A worker serves many sessions, all in one mode: to make it is not a part of the few of them in the next slice.
        """
        if self._switch(measured):
            to, users = self._stacks[measured].front_end, self._plan.concurrent_users
            order = Order(to.url, to.pipeline, to.service, BARE, LEAD_SECONDS, users, seed=0, signed=to.signed)
            order = replace(order, scenario=self._plan.scenario)
            believe(self._load.run(order), f"switching to mode {measured}", bare=True)

    def _switch(self, measured: str) -> bool:
        return measured in KNOWN_MODES and self._stacks[measured].enter(measured)

    def order(self, turn: Turn) -> Order:
        """Return the load of a slice."""
        to = self._stacks[turn.mode].front_end
        return Order(
            to.url,
            to.pipeline,
            to.service,
            turn.session_length,
            self._plan.slice_seconds,
            self._plan.concurrent_users,
            turn.seed,
            self._plan.mispredicted,
            turn.people,
            turn.results,
            to.signed,
            scenario=self._plan.scenario,
            mode=turn.mode,
            phases=self._plan.phases,
        )

    def measure(self, turn: Turn) -> Sample:
        """Run one slice; MeasurementError when it is invalid."""
        stack = self._stacks[turn.mode]
        self.enter(turn.mode)
        tasks = stack.tasks()
        order = self.order(turn)
        before = stack.interceptions()
        cpu = stack.cpu(tasks)
        outcome = self._load.run(order)
        time.sleep(SETTLE_SECONDS)
        used = {name: (total - cpu[name]) / 1e9 for name, total in stack.cpu(tasks).items()}
        after = stack.interceptions()
        stack.check()
        believe(outcome, f"mode {turn.mode}, {sessions(turn.session_length)}", bare=turn.session_length == BARE)
        latency = outcome.login_milliseconds if turn.session_length == BARE else outcome.search_milliseconds
        return Sample(
            round=turn.round,
            order=turn.order,
            mode=turn.mode,
            session_length=turn.session_length,
            mispredicted=self._plan.mispredicted,
            seed=turn.seed,
            queries=outcome.queries,
            sessions=outcome.sessions,
            failures=outcome.failures,
            seconds=round(outcome.seconds, 6),
            cpu_seconds=sum(used.values()),
            driver_cpu_seconds=round(outcome.driver_cpu_seconds, 6),
            latency_p50_ms=latency["p50"],
            latency_p90_ms=latency["p90"],
            latency_p99_ms=latency["p99"],
            login_p50_ms=outcome.login_milliseconds["p50"],
            login_p90_ms=outcome.login_milliseconds["p90"],
            login_p99_ms=outcome.login_milliseconds["p99"],
            violations=outcome.counted.violations,
            interceptions={kind: after[kind] - before.get(kind, 0) for kind in after},
            process_cpu_seconds=used,
            people=turn.people,
            latency_counts={f"{bound * 1e3:.5g}": count for bound, count in outcome.counted.query_times.bounded()},
        )


def run(plan: Plan, meter: Meter, record: Callable[[Sample], None]) -> list[Sample]:
    """Measure the whole plan; call ``record`` with each sample."""
    samples = []
    for turn in schedule(plan):
        sample = meter.measure(turn)
        record(sample)
        samples.append(sample)
    return samples


def believe(outcome: Outcome, what: str, *, bare: bool = False) -> None:
    """Raise MeasurementError when too many requests failed, or none was answered. Bare sessions only log in."""
    answered = outcome.sessions if bare else outcome.queries
    requests = answered + outcome.failures
    if not answered or not outcome.sessions or outcome.failures > MAXIMUM_FAILURES * requests:
        causes = "; ".join(outcome.errors) or "no request was answered"
        failed = f"{what}: {outcome.failures} of {requests} requests failed"
        raise MeasurementError(f"{failed}: {causes}", public=failed)
