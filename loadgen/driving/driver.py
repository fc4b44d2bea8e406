# SPDX-License-Identifier: BSD-2-Clause
"""A load generator's process: runs one slice of load after the other with Locust.

Reads orders, one JSON object a line, from standard input, answers each with one on standard output (see `Order` and
`Outcome`), and ends at end of file. It is a process of its own so that it can be pinned to its own core.

With --connect it does the same over a connection to the measurement (`loadgen.driving.joining`), which also sends it
the people and their queries.
"""

from __future__ import annotations

import gevent.monkey

gevent.monkey.patch_all()

import argparse  # noqa: E402 - everything below has to be imported patched
import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import IO, TYPE_CHECKING  # noqa: E402

import gevent  # noqa: E402
from gevent.fileobject import FileObjectThread  # noqa: E402
from locust.env import Environment  # noqa: E402

from loadgen.datasets import population  # noqa: E402
from loadgen.driving import addresses, exporting, joining  # noqa: E402
from loadgen.driving.discovery import Discovery, add_options  # noqa: E402
from loadgen.driving.interests import InterestsUser  # noqa: E402
from loadgen.driving.metrics import Series, Tally, TallyCollector  # noqa: E402
from loadgen.driving.orders import Order, Outcome  # noqa: E402
from loadgen.driving.protocol import FrontEnd  # noqa: E402
from loadgen.driving.support import SupportUser  # noqa: E402
from loadgen.driving.users import Behaviour, SearchUser  # noqa: E402
from loadgen.driving.visitor import Slice  # noqa: E402
from loadgen.errors import LoadgenError  # noqa: E402
from loadgen.phases import level, moment  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

    from locust import User
    from locust.runners import LocalRunner

    from loadgen.datasets.population import Population

LEAVE_SECONDS = 60.0
"""Time that users have to finish their sessions before they are stopped."""

_ALWAYS = (level("always", 1.0, 1.0),)
_LOOK_SECONDS = 0.1
"""How often the number of users is adjusted to a scenario's."""

_Running = dict[tuple[str, str], "LocalRunner"]
"""The runner of the present slice, by scenario and pipeline."""


def run(order: Order, people: Population, tally: Tally, running: _Running) -> Outcome:
    """Run one slice: users come and go as its phases say, and stop at the end of their sessions."""
    counted = tally[order.scenario, order.pipeline, order.mode]
    before = Series()
    before.add(counted.plain())
    behaviour = Behaviour(
        people.named(order.people),
        order.pipeline,
        order.service,
        order.session_length,
        order.mispredicted,
        f"{order.seed}/{order.worker}",
        results=order.results,
        signed=order.signed,
        counted=counted,
    )
    SearchUser.behaviour = behaviour
    classes: list[type[User]] = [SearchUser, *_beside(order, people, behaviour)]
    environment = Environment(user_classes=classes, host=order.host, stop_timeout=LEAVE_SECONDS)
    runner = running[order.scenario, order.pipeline] = environment.create_local_runner()
    cpu, started = time.process_time(), time.monotonic()
    _attend(runner, order, started, len(classes) - 1)
    behaviour.stopping = True
    runner.user_greenlets.join(timeout=LEAVE_SECONDS)
    seconds = time.monotonic() - started
    if len(runner.user_greenlets):
        behaviour.errors.append(f"{len(runner.user_greenlets)} users had not finished after {LEAVE_SECONDS:.0f} s")
    cpu = time.process_time() - cpu
    runner.quit()
    running.clear()
    return Outcome(seconds, cpu, counted.since(before), behaviour.errors)


def _beside(order: Order, people: Population, behaviour: Behaviour) -> list[type[User]]:
    """Prepare the users beside those who search; return their classes, of each of which there is one user."""
    run = Slice(order.pipeline, behaviour.counted, order.seconds, order.seed, behaviour.errors)
    found: list[type[User]] = []
    if order.desk is not None:
        SupportUser.desk, SupportUser.slice = order.desk, run
        found.append(SupportUser)
    if order.interests is not None:
        InterestsUser.interests, InterestsUser.slice, InterestsUser.people = order.interests, run, people
        InterestsUser.search = FrontEnd.dialled(addresses.read(order.host), order.pipeline, order.service)
        found.append(InterestsUser)
    return found


def _attend(runner: LocalRunner, order: Order, started: float, beside: int) -> None:
    """Keep the number of users what the order says, until its time is over; ``beside`` are there in addition."""
    users = 0
    while (now := moment(order.phases or _ALWAYS, time.monotonic() - started, order.seconds, order.users)) is not None:
        if now.users != users:
            users = now.users
            runner.start(users + beside, spawn_rate=order.users + beside)
        left = order.seconds - (time.monotonic() - started)
        gevent.sleep(max(0.0, min(left, _LOOK_SECONDS) if order.phases else left))


def serve(orders: Iterable[str | bytes], answers: IO[str], people: Population, discovery: Discovery | None) -> None:
    """Carry out orders until there are no more, and answer each with its outcome."""
    tally = Tally()
    running: _Running = {}

    def users() -> dict[tuple[str, str], int]:
        return {labels: runner.user_count for labels, runner in running.items()}

    with exporting.served(TallyCollector(tally, users), discovery, _warn) as exporter:
        print("ready", file=answers, flush=True)
        for line in orders:
            order = Order.read(line)
            outcome = run(order, people, tally, running)
            if order.desk is not None or order.interests is not None:
                # It happens once, and this process may be ended as soon as it has answered.
                exporter.await_last_scrape(exporting.LAST_SCRAPE_SECONDS)
            print(outcome.plain(), file=answers, flush=True)


def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Serve orders until standard input or the connection ends; 1 when the measurement cannot be joined."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--data", type=Path, help="data directory of the corpus generator")
    where.add_argument("--connect", metavar="HOST:PORT", help="a measurement that waits for its workers")
    parser.add_argument("--tls", type=Path, metavar="DIR", help="with --connect: ca.pem and worker.pem")
    add_options(parser)
    options = parser.parse_args()
    if options.connect and options.tls is None:
        parser.error("--connect needs --tls")
    try:
        if options.connect:
            with joining.join(options.connect, options.tls) as (people, orders, answers):
                serve(orders, answers, people, Discovery.of(options))
        else:
            # Locust has patched no file: a greenlet that reads one would stop the server of the metrics meanwhile.
            lines = FileObjectThread(sys.stdin.fileno(), "rb", closefd=False)
            serve(lines, sys.stdout, population.load(options.data), Discovery.of(options))
    except (LoadgenError, OSError) as error:
        _warn(f"load generator: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
