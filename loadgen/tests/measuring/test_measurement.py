# SPDX-License-Identifier: BSD-2-Clause
"""Schedules and slices, with a fake load and fake stacks around real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.driving.metrics import Series
from loadgen.driving.orders import Order, Outcome
from loadgen.driving.protocol import FrontEnd
from loadgen.measuring.benchmark import scenario_of
from loadgen.measuring.measurement import MeasurementError, Meter, Turn, schedule
from loadgen.plan import BARE, PLANS, PlanError
from loadgen.scenarios.definitions import SCENARIOS
from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TURN = Turn(round=0, order=0, mode="shai", session_length=8, seed=3)


def outcome(queries: int = 80, sessions: int = 10, failures: int = 0, errors: tuple[str, ...] = ()) -> Outcome:
    counted = Series(Counter(ok=queries, failed=failures), Counter(ok=sessions), 5 * queries, violations=3)
    for number in range(queries):
        counted.query_times.add(0.001 * (1 + number))
    for _ in range(sessions):
        counted.login_times.add(0.002)
    return Outcome(1.0, 0.1, counted, list(errors))


OUTCOME = outcome()


def test_rounds_run_every_mode_at_every_length_once() -> None:
    plan = replace(PLANS["quick"], seed=5)
    turns = list(schedule(plan))
    assert len(turns) == plan.slices
    assert set(Counter((turn.round, turn.session_length, turn.mode) for turn in turns).values()) == {1}
    assert [turn.order for turn in turns] == list(range(plan.slices))
    assert len({tuple(turn.mode for turn in turns[i : i + 5]) for i in range(0, len(turns), 5)}) > 6
    assert turns == list(schedule(plan))
    assert turns != list(schedule(replace(plan, seed=6)))


def test_only_the_modes_that_are_asked_for_are_run() -> None:
    plan = replace(PLANS["quick"], modes=("baseline", "audit"))
    assert {turn.mode for turn in schedule(plan)} == {"baseline", "audit", "control"}
    assert len(list(schedule(plan))) == plan.slices


def test_modes_of_a_block_serve_the_same_users_and_queries() -> None:
    turns = list(schedule(PLANS["quick"]))
    for start in range(0, len(turns), 5):
        assert len({turn.seed for turn in turns[start : start + 5]}) == 1


class FakeStack:
    front_end = FrontEnd.dialled(("127.0.0.1", 1), "syse")

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids
        self.modes: list[str] = []
        self.count = 10
        self.switched = False

    def enter(self, mode: str) -> bool:
        another = mode not in self.modes[-1:]
        self.modes.append(mode)
        return another

    def check(self) -> None:
        if self.switched:
            raise MeasurementError("switched by somebody")

    def interceptions(self) -> dict[str, int]:
        self.count += 20
        return {"accept": self.count}

    def tasks(self) -> dict[str, int]:
        return {f"task {pid}": pid for pid in self.pids}

    def cpu(self, tasks: Mapping[str, int]) -> dict[str, int]:
        return {name: processes.task_nanoseconds(pid, [os.getpid()])[0] for name, pid in tasks.items()}


class FakeLoad:
    def __init__(self, zygote: subprocess.Popen[str], outcome: Outcome) -> None:
        self.zygote = zygote
        self.outcome = outcome
        self.orders: list[Order] = []

    def run(self, order: Order) -> Outcome:
        self.orders.append(order)
        assert self.zygote.stdin is not None
        assert self.zygote.stdout is not None
        print("work", file=self.zygote.stdin, flush=True)
        self.zygote.stdout.readline()
        return self.outcome


ZYGOTE = """
import os, sys, time
for line in sys.stdin:
    if os.fork() == 0:
        while time.process_time() < 0.25: pass
        os._exit(0)
    os.wait()
    print("done", flush=True)
"""


@pytest.fixture
def zygote() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", ZYGOTE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_slice_counts_the_time_of_workers_that_have_ended(zygote: subprocess.Popen[str]) -> None:
    stack, load = FakeStack([zygote.pid]), FakeLoad(zygote, OUTCOME)
    sample = Meter(load, {"shai": stack}, PLANS["quick"]).measure(TURN)
    assert 0.23 < sample.cpu_seconds < 1.0
    assert sample.interceptions == {"accept": 20}
    assert stack.modes == ["shai"]
    assert load.orders[-1].session_length == 8
    assert (sample.queries, sample.sessions, sample.failures, sample.violations) == (80, 10, 0, 3)
    assert sample.latency_p50_ms == pytest.approx(40, rel=0.023)
    assert sample.login_p99_ms == pytest.approx(2, rel=0.023)
    assert sum(sample.latency_counts.values()) == 80
    assert sum(count for bound, count in sample.latency_counts.items() if float(bound) <= 20.0) in (19, 20)


def test_a_slice_is_a_run_of_the_whole_scenario(zygote: subprocess.Popen[str]) -> None:
    plan = scenario_of(replace(PLANS["quick"], scenario="spike", slice_seconds=60.0))
    stack, load = FakeStack([zygote.pid]), FakeLoad(zygote, OUTCOME)
    meter = Meter(load, dict.fromkeys(plan.series, stack), plan)
    turns = [turn for turn in schedule(plan) if turn.round == 0]
    assert sorted(turn.mode for turn in turns) == sorted(plan.series), "each mode once, at the scenario's length"
    for turn in turns:
        meter.measure(turn)
    orders = [order for order in load.orders if order.session_length != BARE]
    assert {(order.phases, order.seconds, order.scenario) for order in orders} == {
        (SCENARIOS["spike"].phases, 60.0, "spike")
    }
    assert len({order.seed for order in orders}) == 1, "the same users and queries"
    assert [order.mode for order in orders] == [turn.mode for turn in turns]


def test_scenarios_say_what_users_do() -> None:
    quick = PLANS["quick"]
    assert scenario_of(quick) == quick
    sessions = scenario_of(replace(quick, scenario="sessions_32"))
    assert (sessions.session_lengths, sessions.phases) == ((32,), ())
    assert scenario_of(replace(quick, scenario="mispredicted")).mispredicted == 0.5
    for wrong in ("unfriending", "shop"):
        with pytest.raises(
            PlanError, match=f"'{wrong}' cannot be measured in several modes; expected one of search, s"
        ):
            scenario_of(replace(quick, scenario=wrong))


def test_workers_for_another_mode_are_made_before_the_slice(zygote: subprocess.Popen[str]) -> None:
    stack, load = FakeStack([zygote.pid]), FakeLoad(zygote, OUTCOME)
    meter = Meter(load, {"shai": stack, "dynamic": stack, "process": stack}, PLANS["quick"])
    for mode in ("shai", "shai", "dynamic", "process"):
        meter.measure(replace(TURN, mode=mode))
    lengths = [order.session_length for order in load.orders]
    assert lengths == [BARE, 8, 8, BARE, 8, 8], "what is no mode has workers of its own"
    assert stack.modes == ["shai", "shai", "dynamic"]


def test_every_stack_is_warmed_up_for_the_same_time(zygote: subprocess.Popen[str]) -> None:
    baseline, confined, load = FakeStack([]), FakeStack([]), FakeLoad(zygote, OUTCOME)
    Meter(load, {"baseline": baseline, "dynamic": confined, "shai": confined}, PLANS["quick"]).warm_up()
    assert [order.seconds for order in load.orders] == [25.0, 12.5, 12.5]
    assert confined.modes == ["dynamic", "shai"]


def test_a_slice_in_which_the_mode_was_switched_is_not_believed(zygote: subprocess.Popen[str]) -> None:
    stack = FakeStack([zygote.pid])
    stack.switched = True
    with pytest.raises(MeasurementError, match="switched"):
        Meter(FakeLoad(zygote, OUTCOME), {"shai": stack}, PLANS["quick"]).measure(TURN)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (outcome(failures=1), "1 of 81 requests failed: no request"),
        (outcome(queries=0, errors=("refused",)), "0 of 0 requests failed: refused"),
        (outcome(sessions=0), "requests failed"),
    ],
)
def test_failed_slices_are_not_believed(zygote: subprocess.Popen[str], found: Outcome, message: str) -> None:
    stack = FakeStack([zygote.pid])
    stack.modes.append("shai")
    meter = Meter(FakeLoad(zygote, found), {"shai": stack}, PLANS["quick"])
    with pytest.raises(MeasurementError, match=message):
        meter.measure(TURN)


def test_an_ended_task_is_an_error() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        with pytest.raises(processes.ProcessGoneError, match="has ended"):
            processes.cpu_nanoseconds(process.pid)


def test_pinning_binds_every_thread() -> None:
    code = "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print(flush=True)"
    core = {min(os.sched_getaffinity(0))}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        processes.pin([process.pid], core)
        bound = [os.sched_getaffinity(int(path.name)) for path in Path(f"/proc/{process.pid}/task").iterdir()]
    assert bound == [core, core]
