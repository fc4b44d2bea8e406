# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's process: runs one slice of load after the other with Locust.

Reads orders, one JSON object a line, from standard input, answers each with one on standard output (see `Order` and
`Outcome`), and ends at end of file. It is a process of its own so that it can be pinned to its own core.
"""

from __future__ import annotations

import gevent.monkey

gevent.monkey.patch_all()

import argparse  # noqa: E402 - everything below has to be imported patched
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import gevent  # noqa: E402
import numpy as np  # noqa: E402
from gevent.fileobject import FileObjectThread  # noqa: E402
from locust.env import Environment  # noqa: E402

from loadgen.datasets import population  # noqa: E402
from loadgen.driving import exporting  # noqa: E402
from loadgen.driving.metrics import Tally, TallyCollector  # noqa: E402
from loadgen.driving.orders import Order, Outcome  # noqa: E402
from loadgen.driving.users import Behaviour, SearchUser  # noqa: E402

if TYPE_CHECKING:
    from locust.runners import LocalRunner

LEAVE_SECONDS = 60.0
"""Time that users have to finish their sessions before they are stopped."""


class Recorder:
    """Collects Locust's reports during one slice."""

    def __init__(self) -> None:
        self.search_milliseconds: list[float] = []
        self.login_milliseconds: list[float] = []
        self.failures = 0

    def record(self, *, name: str, response_time: float, exception: Exception | None, **_: Any) -> None:
        """Record one request; a listener for Locust's request event."""
        if exception is not None:
            self.failures += 1
        elif name == "/search":
            self.search_milliseconds.append(response_time)
        else:
            self.login_milliseconds.append(response_time)


def run(
    order: Order, people: population.Population, tally: Tally, running: dict[tuple[str, str], LocalRunner]
) -> Outcome:
    """Run one slice: all users start at once, and stop at the end of their sessions.

    ``running`` has the runner meanwhile, by scenario and pipeline.
    """
    behaviour = Behaviour(
        people.named(order.people),
        order.pipeline,
        order.service,
        order.session_length,
        order.mispredicted,
        order.seed,
        results=order.results,
        signed=order.signed,
        counted=tally[order.scenario, order.pipeline, order.mode],
    )
    SearchUser.behaviour = behaviour
    environment = Environment(user_classes=[SearchUser], host=order.host)
    recorder = Recorder()
    environment.events.request.add_listener(recorder.record)  # type: ignore[no-untyped-call]
    runner = running[order.scenario, order.pipeline] = environment.create_local_runner()
    cpu, started = time.process_time(), time.monotonic()
    runner.start(order.users, spawn_rate=order.users)
    gevent.sleep(order.seconds)
    behaviour.stopping = True
    runner.user_greenlets.join(timeout=LEAVE_SECONDS)
    seconds = time.monotonic() - started
    if len(runner.user_greenlets):
        behaviour.errors.append(f"{len(runner.user_greenlets)} users had not finished after {LEAVE_SECONDS:.0f} s")
    cpu = time.process_time() - cpu
    runner.quit()
    running.clear()
    return Outcome(
        queries=len(recorder.search_milliseconds),
        sessions=len(recorder.login_milliseconds),
        failures=recorder.failures,
        errors=behaviour.errors,
        seconds=seconds,
        search_milliseconds=_percentiles(recorder.search_milliseconds),
        login_milliseconds=_percentiles(recorder.login_milliseconds),
        driver_cpu_seconds=cpu,
    )


def _percentiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    found = np.percentile(values, [50, 90, 99])
    return dict(zip(("p50", "p90", "p99"), (round(float(value), 4) for value in found), strict=True))


def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Serve orders until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="data directory of the corpus generator")
    parser.add_argument("--scrape", type=Path, help="announce metrics to Prometheus in this directory's targets")
    options = parser.parse_args()
    people = population.load(options.data)
    tally = Tally()
    running: dict[tuple[str, str], LocalRunner] = {}

    def users() -> dict[tuple[str, str], int]:
        return {labels: runner.user_count for labels, runner in running.items()}

    with exporting.served(TallyCollector(tally, users), options.scrape, _warn):
        print("ready", flush=True)
        # Locust has patched no file: a greenlet that reads one would stop the server of the metrics meanwhile.
        for line in FileObjectThread(sys.stdin.fileno(), "rb", closefd=False):
            outcome = run(Order(**json.loads(line)), people, tally, running)
            print(json.dumps(asdict(outcome)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
