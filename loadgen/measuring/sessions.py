# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a session costs, a query in it, and an interception.

python -m loadgen sessions --output out/bench

Sys-E's front end, with its policies and a light search engine, runs in four installations of its own: two in mode
baseline, of which the second is the control; one in mode baseline with a process for each session; and one under
enforcement, measured in modes shai and dynamic. Each has its own monitor and key-value store. Slices alternate in
random order. The command prints tables, and writes session.json, session.txt and samples.csv. It needs root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import stat
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen.datasets import corpus, crowd
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.errors import LoadgenError
from loadgen.measuring import cores, ed25519, live
from loadgen.measuring.measurement import SETTLE_SECONDS, Meter, Turn, believe
from loadgen.plan import BARE, BASELINE, UNLIMITED, Plan
from loadgen.results import estimates, sessions, summary
from loadgen.results.samples import SampleFile
from loadgen.stacks import launcher, light, manifests, processes
from loadgen.stacks.counters import Counters
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from loadgen.driving.orders import Driver
    from loadgen.results.samples import Sample
    from loadgen.stacks.launcher import Site
    from loadgen.stacks.stack import Stack

_PIPELINE = "syse"
_HOST = "127.0.0.1"
_ROOT = Path(__file__).resolve().parents[2]
_COUNTED = (BASELINE, sessions.FORKED, sessions.SHAI)
_ONE_DOCUMENT = 1


class SessionsError(LoadgenError):
    """Sessions cannot be measured here; the text says why and what to do."""


@dataclass(frozen=True)
class Place:
    """The programs and manifests that are measured, and the directories of the measurement, all absolute."""

    image: Path
    manifests: Path
    output: Path

    @property
    def data(self) -> Path:
        """The people and documents."""
        return self.output / "data"

    @property
    def held(self) -> Path:
        """The people and documents of the live sessions."""
        return self.output / "held"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.output / "logs"

    @property
    def site(self) -> Site:
        """What stacks are launched from."""
        java, home = corpus.find_java()
        return launcher.Site(
            shai=self.image / "bin" / "shai",
            data=self.data,
            seed=self.data / SEED_COMMANDS,
            state=self.output / "state",
            logs=self.logs,
            variables={
                "JAVA": str(java),
                "JAVA_HOME": str(home),
                "SYSE": str(self.image / "syse"),
                "KEYS": str(self.data / "facts" / "population.jsonl"),
            },
            cores=frozenset(processes.split_cores()[0]),
        )

    @contextlib.contextmanager
    def prepared(self, people: crowd.Crowd) -> Iterator[None]:
        """Lock the output directory and fill it; SessionsError when nothing can be measured in it."""
        if os.geteuid() != 0:
            raise SessionsError("tasks run as users of their own, which needs root: run it with sudo")
        if not self.image.exists():
            raise SessionsError(f"{self.image} is missing: run `make build`")
        self.output.mkdir(parents=True, exist_ok=True)
        closed = [path for path in (self.output, *self.output.parents) if not path.stat().st_mode & stat.S_IXOTH]
        if closed:
            raise SessionsError(f"tasks run as users that cannot search {closed[-1]}: give another --output")
        with (self.output / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SessionsError(f"another measurement writes to {self.output}: wait for its end") from None
            crowd.make(self.data, people)
            shutil.rmtree(self.held, ignore_errors=True)
            for directory in (self.logs, self.site.state):
                directory.mkdir(exist_ok=True)
            yield


def turns(plan: Plan) -> Iterator[Turn]:
    """Yield all slices: in each round bare sessions, queries of users, and queries of people near and far.

    Slices that are compared follow each other in random order, with the same seed.
    """
    source = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
    order = 0
    for number in range(plan.rounds):
        blocks = (
            [(series, BARE, crowd.USERS, 0) for series in sessions.BARE_SERIES],
            [(series, UNLIMITED, crowd.USERS, 10) for series in sessions.QUERY_SERIES],
            [(sessions.SHAI, UNLIMITED, people, _ONE_DOCUMENT) for people in (crowd.NEAR, crowd.FAR)],
        )
        for block in blocks:
            seed = source.randrange(1 << 31)
            for series, length, people, results in source.sample(block, len(block)):
                yield Turn(number, order, series, length, seed, people, results)
                order += 1


class Sessions:
    """One measurement."""

    def __init__(self, place: Place, plan: Plan, console: Console) -> None:
        self._place = place
        self._plan = plan
        self._console = console

    def run(self, supervisor: Supervisor) -> dict[str, Any]:
        """Measure; return what session.json contains, but for live sessions."""
        with (
            self._stacks(supervisor) as stacks,
            cores.driver(self._place.data, self._place.logs, supervisor) as driver,
            cores.pinned(list(stacks.values()), supervisor),
        ):
            confined = stacks[sessions.SHAI]
            meter = Meter(driver, {**stacks, sessions.DYNAMIC: confined}, self._plan)
            self._tell("warming up")
            meter.warm_up()
            measured = self._measure(meter)
            self._tell("counting page faults, switches and system calls")
            count = partial(self._count, meter, driver)
            bare = Turn(0, 0, sessions.SHAI, BARE, self._plan.seed, crowd.USERS)
            counts = {name: count(stacks[name], replace(bare, mode=name)) for name in _COUNTED}
            asking = replace(bare, session_length=UNLIMITED, results=_ONE_DOCUMENT)
            near, far = (count(confined, replace(asking, people=kind)) for kind in (crowd.NEAR, crowd.FAR))
        self._tell("verifying logins")
        return sessions.summarise(
            measured,
            ed25519=estimates.median(_verifications(), self._plan.seed),
            counts=counts,
            near=near,
            far=far,
            size={
                "rounds": self._plan.rounds,
                "slice_seconds": self._plan.slice_seconds,
                "concurrent_users": self._plan.concurrent_users,
                "seed": self._plan.seed,
            },
            seed=self._plan.seed,
        )

    @contextlib.contextmanager
    def _stacks(self, supervisor: Supervisor) -> Iterator[dict[str, Stack]]:
        documents = light.derive(manifests.read(self._place.manifests), _PIPELINE)
        serving = (light.ENGINE, light.FRONT_END)
        variants = {
            **{variant.name: variant for variant in launcher.TWINS},
            sessions.FORKED: launcher.FORKED,
            sessions.SHAI: launcher.CONFINED,
        }
        with launcher.launching(self._place.site, documents, _PIPELINE, supervisor, serving) as stacks:
            started = {}
            for name, variant in variants.items():
                self._tell(f"starting {name}")
                stack = started[name] = stacks.launch(variant, (_HOST, free_port(_HOST)))
                stack.analyze()
                stack.serve()
            yield started

    def _measure(self, meter: Meter) -> list[Sample]:
        file = SampleFile(self._place.output / "samples.csv")
        measured = []
        schedule = list(turns(self._plan))
        for turn in schedule:
            self._tell(f"slice {turn.order + 1} of {len(schedule)}: {turn.mode}")
            sample = meter.measure(turn)
            file.append(sample)
            measured.append(sample)
        return measured

    def _count(self, meter: Meter, driver: Driver, stack: Stack, turn: Turn) -> sessions.Counts:
        """Count what happens in a slice, whose time is not measured."""
        stack.enter(turn.mode if turn.mode == sessions.SHAI else BASELINE)
        with Counters(stack.members(stack.tasks())) as counters:
            outcome = driver.run(meter.order(turn))
            time.sleep(SETTLE_SECONDS)
            found = counters.read()
        believe(outcome, f"counting in mode {turn.mode}", bare=turn.session_length == BARE)
        return sessions.Counts(outcome.sessions, outcome.queries, found)

    def hold(self, supervisor: Supervisor, sessions: int, revoked: int) -> dict[str, Any]:
        """Hold live sessions and revoke some of them; return what session.json contains about them."""
        return live.measure(
            replace(self._place.site, data=self._place.held, seed=None),
            manifests.read(self._place.manifests),
            supervisor,
            sessions=sessions,
            revoked=revoked,
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
    parser.add_argument("--output", type=Path, required=True, help="directory for what is written")
    image, manifests = _ROOT / "build" / "images" / "default", _ROOT / "crds" / "examples" / "syse"
    parser.add_argument("--image", type=Path, default=image, help="the programs that are measured")
    parser.add_argument("--manifests", type=Path, default=manifests, help="Sys-E's manifests")
    parser.add_argument("--rounds", type=_positive, default=11, help="how often each slice is run (11)")
    parser.add_argument("--slice-seconds", type=float, default=3.0, help="the length of a slice (3)")
    parser.add_argument("--warm-up-seconds", type=float, default=15.0, help="load on each installation before (15)")
    parser.add_argument("--concurrent-users", type=_positive, default=24, help="users at the same time (24)")
    parser.add_argument("--users", type=_positive, default=crowd.Crowd().users, help="users in the data (400)")
    parser.add_argument("--live", type=int, default=1000, help="live sessions at the same time, 0 for none (1000)")
    parser.add_argument("--revoked", type=_positive, default=100, help="how many of them are revoked at once (100)")
    parser.add_argument("--seed", type=int, default=1, help="of users and the order of slices")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def run(options: Namespace) -> None:
    """Measure, print the tables and write the results."""
    place = Place(options.image.resolve(), options.manifests.resolve(), options.output.resolve())
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
    with place.prepared(crowd.Crowd(users=options.users)), Supervisor() as supervisor:
        measurement = Sessions(place, plan, progress)
        found = measurement.run(supervisor)
        write(place.output, found)  # before what may fail only because the machine is too small
        if options.live > 0:
            found["live"] = measurement.hold(supervisor, options.live, options.revoked)
            write(place.output, found)
    if sys.stdout.isatty():
        sessions.show(found, Console())
    else:
        sys.stdout.write(sessions.plain(found))


def write(directory: Path, found: dict[str, Any]) -> None:
    """Write session.json and session.txt."""
    summary.write(directory / "session.json", found)
    (directory / "session.txt").write_text(sessions.plain(found))
