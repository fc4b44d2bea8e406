# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a session costs, a query in it, and an interception.

python -m loadgen sessions --output out/bench

Sys-E's front end, with its policies and a light search engine, runs in five installations of its own: two in mode
baseline, of which the second is the control; one in mode baseline with a process for each session; and two under
enforcement, of which one rolls its workers back, and is measured in modes shai, dynamic and dynamic-lazy, and the other
one has a process for each session. With --beside, there is one more under enforcement, with the programs and manifests
of another checkout. Each has its own monitor and key-value store. Slices alternate in random order. The command prints
tables, and writes session.json, session.txt and samples.csv. It needs root.
"""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen.datasets import crowd
from loadgen.measuring import cores, ed25519, installations, live
from loadgen.measuring.measurement import SETTLE_SECONDS, Meter, Turn, believe
from loadgen.measuring.options import add_load, add_place, place_of, positive
from loadgen.measuring.place import revision
from loadgen.plan import BARE, UNLIMITED, Plan
from loadgen.results import estimates, session_tables, sessions, summary
from loadgen.results.samples import SampleFile
from loadgen.stacks import launcher, light, manifests, processes
from loadgen.stacks.counters import Counters
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from loadgen.driving.orders import Crew
    from loadgen.measuring.place import Place
    from loadgen.results.samples import Sample
    from loadgen.stacks.launcher import Variant
    from loadgen.stacks.stack import Stack

_ONE_DOCUMENT = 1
_LIVE = {"live": launcher.CONFINED, "live_process": launcher.A_PROCESS_EACH}


def turns(plan: Plan, bare: Sequence[str] = sessions.BARE_SERIES) -> Iterator[Turn]:
    """Yield all slices: in each round bare sessions, queries of users, and queries of people near and far.

    Slices that are compared follow each other in random order, with the same seed.
    """
    source = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
    order = 0
    for number in range(plan.rounds):
        blocks = (
            [(series, BARE, crowd.USERS, 0) for series in bare],
            [(series, UNLIMITED, crowd.USERS, 10) for series in sessions.QUERY_SERIES],
            [(sessions.SHAI, UNLIMITED, people, _ONE_DOCUMENT) for people in (crowd.NEAR, crowd.FAR)],
        )
        for block in blocks:
            seed = source.randrange(1 << 31)
            for series, length, people, results in source.sample(block, len(block)):
                yield Turn(number, order, series, length, seed, people, results)
                order += 1


class Sessions:
    """One measurement, beside another checkout if one is given."""

    def __init__(self, place: Place, other: Path | None, plan: Plan, console: Console) -> None:
        self._place = place
        self._other = other
        self._plan = plan
        self._console = console

    def run(self, supervisor: Supervisor) -> dict[str, Any]:
        """Measure; return what session.json contains, but for live sessions."""
        other = None if self._other is None else self._place.beside(self._other)
        with (
            installations.started(self._place, other, supervisor, self._tell) as stacks,
            cores.crew(self._place.data, self._place.logs, supervisor) as driver,
            cores.pinned(list(stacks.values()), supervisor),
        ):
            confined = stacks[sessions.SHAI]
            meter = Meter(driver, {**stacks, sessions.DYNAMIC: confined, sessions.LAZY: confined}, self._plan)
            self._tell("warming up")
            meter.warm_up()
            schedule = turns(self._plan, [*sessions.BARE_SERIES, *([sessions.BESIDE] if other else [])])
            measured = self._measure(meter, list(schedule))
            self._tell("counting page faults, switches and system calls")
            count = partial(self._count, meter, driver)
            bare = Turn(0, 0, sessions.SHAI, BARE, self._plan.seed, crowd.USERS)
            counts = {name: count(stacks[name], replace(bare, mode=name)) for name in sessions.COUNTED}
            asking = replace(bare, session_length=UNLIMITED, results=_ONE_DOCUMENT)
            unsealed = confined.message(light.FRONT_END)
            near, far = (count(confined, replace(asking, people=kind)) for kind in (crowd.NEAR, crowd.FAR))
        self._tell("verifying logins")
        return sessions.summarise(
            measured,
            ed25519=estimates.median(_verifications(), self._plan.seed),
            counts=counts,
            near=near,
            far=far,
            unsealed=unsealed,
            beside=None if self._other is None else revision(self._other),
            size={
                "rounds": self._plan.rounds,
                "slice_seconds": self._plan.slice_seconds,
                "concurrent_users": self._plan.concurrent_users,
                "seed": self._plan.seed,
            },
            seed=self._plan.seed,
        )

    def _measure(self, meter: Meter, schedule: Sequence[Turn]) -> list[Sample]:
        file = SampleFile(self._place.output / "samples.csv")
        measured = []
        for turn in schedule:
            self._tell(f"slice {turn.order + 1} of {len(schedule)}: {turn.mode}")
            sample = meter.measure(turn)
            file.append(sample)
            measured.append(sample)
        return measured

    def _count(self, meter: Meter, driver: Crew, stack: Stack, turn: Turn) -> sessions.Counts:
        """Count what happens in a slice, whose time is not measured."""
        meter.enter(turn.mode)
        with Counters(stack.members(stack.tasks())) as counters:
            outcome = driver.run(meter.order(turn))
            time.sleep(SETTLE_SECONDS)
            found = counters.read()
        believe(outcome, f"counting in mode {turn.mode}", bare=turn.session_length == BARE)
        return sessions.Counts(outcome.sessions, outcome.queries, found)

    def hold(self, supervisor: Supervisor, variant: Variant, sessions: int, revoked: int) -> dict[str, Any]:
        """Hold live sessions and revoke some of them; return what session.json contains about them."""
        self._tell(f"holding live sessions: {variant.name}")
        return live.measure(
            replace(self._place.site, data=self._place.held / variant.name, seed=None),
            manifests.read(self._place.manifests),
            supervisor,
            sessions=sessions,
            revoked=revoked,
            options=variant.monitor,
            tell=self._tell,
        )

    def _tell(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False)


def _verifications() -> list[float]:
    """Verify on the core of the system under test."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processes.split_cores()[0])
    try:
        return ed25519.verification_micros()
    finally:
        os.sched_setaffinity(0, before)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    add_place(parser)
    seeded = "users and the order of slices"
    add_load(parser, rounds=11, slice_seconds=3.0, warm_up_seconds=15.0, seeded=seeded)
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with what another checkout has built")
    parser.add_argument("--users", type=positive, default=crowd.Crowd().users, help="users in the data (400)")
    parser.add_argument("--live", type=int, default=1000, help="live sessions at the same time, 0 for none (1000)")
    parser.add_argument("--revoked", type=positive, default=100, help="how many of them are revoked at once (100)")


def run(options: Namespace) -> None:
    """Measure, print the tables and write the results."""
    place = place_of(options)
    plan = Plan(
        "sessions",
        rounds=options.rounds,
        slice_seconds=options.slice_seconds,
        warm_up_seconds=options.warm_up_seconds,
        session_lengths=(BARE, UNLIMITED),
        concurrent_users=options.concurrent_users,
        seed=options.seed,
    )
    os.umask(0o022)  # tasks run as other users, and read the documents
    progress = Console(stderr=True)
    other = options.beside.resolve() if options.beside else None
    for where in (place, *([place.beside(other)] if other else [])):
        where.check()
    with place.prepared(crowd.Crowd(users=options.users)), Supervisor() as supervisor:
        measurement = Sessions(place, other, plan, progress)
        found = measurement.run(supervisor)
        write(place.output, found)  # before what may fail only because the machine is too small
        for name, variant in _LIVE.items() if options.live > 0 else ():
            found[name] = measurement.hold(supervisor, variant, options.live, options.revoked)
            write(place.output, found)
    if sys.stdout.isatty():
        session_tables.show(found, Console())
    else:
        sys.stdout.write(session_tables.plain(found))


def write(directory: Path, found: dict[str, Any]) -> None:
    """Write session.json and session.txt."""
    summary.write(directory / "session.json", found)
    (directory / "session.txt").write_text(session_tables.plain(found))
