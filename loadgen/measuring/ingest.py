# SPDX-License-Identifier: BSD-2-Clause
"""Measures what documents that come in do to searches.

python -m loadgen ingest --output out/bench/ingest

Sys-E with Lucene runs under enforcement, in an installation of its own, on a corpus of its own. Users search all the
time. In each round there are two slices in random order: one in which nothing comes, and one in which documents come
into its directories at a rate. After the second one, the command waits until the monitor has catalogued all of them,
and until a search finds the last one. It prints a table, and writes ingest.json. It needs root.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen.datasets import arrivals, corpus, population
from loadgen.datasets.sizes import DATASETS
from loadgen.driving.orders import Order
from loadgen.driving.protocol import search_once
from loadgen.errors import LoadgenError
from loadgen.measuring import cores
from loadgen.measuring.measurement import believe
from loadgen.measuring.options import add_load, add_place, place_of
from loadgen.plan import UNLIMITED
from loadgen.results import estimates, summary, tables
from loadgen.stacks import indexed, manifests
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.table import Table

    from loadgen.driving.orders import Crew
    from loadgen.stacks.stack import Stack

QUIET, INGESTING = "quiet", "ingesting"
RESULT = "ingest.json"

_WAIT_SECONDS = 600.0
_CATALOGUED = "shai_ingested_documents"
_DIGITS = 4


class IngestError(LoadgenError):
    """Documents do not arrive; the text says where they are lost."""


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    rounds: int
    slice_seconds: float
    warm_up_seconds: float
    concurrent_users: int
    documents_per_second: float
    seed: int


@dataclass(frozen=True)
class Slice:
    """What was measured in one slice; what concerns documents is 0 in a quiet one."""

    round: int
    load: str
    queries_per_second: float
    latency_p50_ms: float
    latency_p99_ms: float
    documents: int = 0
    offered_per_second: float = 0.0
    """Documents that were put into the directories."""
    catalogued_per_second: float = 0.0
    """From the first one put until the last one was catalogued."""
    step_p99_ms: float = 0.0
    """Time of the monitor's steps: an upper bound of the bucket."""
    behind_seconds: float = 0.0
    """From the end of the slice until all were catalogued."""
    found_after_seconds: float = 0.0
    """From the end of the slice until a search found the last one."""


class Meter:
    """Measures slices on a running Sys-E."""

    def __init__(self, stack: Stack, load: Crew, data: Path, plan: Plan) -> None:
        self._stack = stack
        self._load = load
        self._data = data
        self._plan = plan
        people = population.load(data)
        self._reader = people.people[0]
        names = [person.name for person in people.people]
        # Directories that exist have classes that the analysis knows: their documents are native at once.
        self._owners = [name for name in names if (data / "corpus" / arrivals.PRIVATE / name).is_dir()]
        self._words = [word for query in people.queries for word in query.split()]
        self._random = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
        self._prefix = 0

    def search(self, seconds: float) -> tuple[float, dict[str, float]]:
        """Search with all users for some time; return queries per second and the percentiles of their latency."""
        to, users = self._stack.front_end, self._plan.concurrent_users
        seed = self._random.randrange(1 << 31)
        order = Order(to.url, to.pipeline, to.service, UNLIMITED, seconds, users, seed, signed=to.signed)
        outcome = self._load.run(order)
        believe(outcome, "searching")
        return outcome.queries / outcome.seconds, outcome.search_milliseconds

    def quiet(self, number: int) -> Slice:
        """Measure searches while nothing comes."""
        rate, latency = self.search(self._plan.slice_seconds)
        return Slice(number, QUIET, rate, latency["p50"], latency["p99"])

    def ingesting(self, number: int) -> Slice:
        """Measure searches while documents come, and wait until all have arrived."""
        self._prefix += 1
        prefix = f"arrival{self._prefix}x"
        source = arrivals.stream(prefix, self._owners, self._words, self._random)
        catalogued, steps = self._catalogued(), self._steps()
        put: list[int] = []
        seconds = self._plan.slice_seconds
        feeding = threading.Thread(
            target=lambda: put.append(arrivals.put_evenly(source, self._data, self._plan.documents_per_second, seconds))
        )
        begun = time.monotonic()
        feeding.start()
        rate, latency = self.search(seconds)
        feeding.join()
        ended = time.monotonic()
        documents = put[0]
        self._wait("the monitor has catalogued all documents", lambda: self._catalogued() >= catalogued + documents)
        known = time.monotonic()
        last = arrivals.document(
            f"corpus/public/{prefix}last.txt", arrivals.NOBODY, arrivals.PUBLIC, f"{prefix}last", "-"
        )
        last.put(self._data)  # everybody may find it; it is indexed after all others
        self._wait("a search finds the last document", lambda: self._finds(f"{prefix}last"))
        return Slice(
            number, INGESTING, rate, latency["p50"], latency["p99"],
            documents=documents,
            offered_per_second=documents / (ended - begun),
            catalogued_per_second=documents / (known - begun),
            step_p99_ms=_quantile(steps, self._steps(), 0.99) * 1e3,
            behind_seconds=known - ended,
            found_after_seconds=time.monotonic() - ended,
        )  # fmt: skip

    def _finds(self, title: str) -> bool:
        found = search_once(self._stack.front_end, self._reader, title, 10)
        return any(result["title"] == title for result in found["results"])

    def _catalogued(self) -> int:
        samples = self._stack.monitor.samples(_CATALOGUED)
        return sum(int(one.value) for one in samples if one.labels.get("result") in {"added", "renewed"})

    def _steps(self) -> dict[float, float]:
        """Return the steps so far by the upper bound of their time in seconds, cumulative."""
        samples = self._stack.monitor.samples("shai_ingest_seconds")
        return {float(one.labels["le"]): one.value for one in samples if one.name.endswith("_bucket")}

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise IngestError(f"not within {_WAIT_SECONDS:.0f} s: {what}")
            time.sleep(0.1)


def _quantile(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """Return the upper bound of the bucket in which a share of the steps in between lies."""
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    total = max(counts.values(), default=0.0)
    return next((bound for bound, count in counts.items() if count >= share * total), 0.0)


def measure(meter: Meter, plan: Plan, tell: Callable[[str], None]) -> list[Slice]:
    """Measure the whole plan."""
    order = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
    slices = []
    for number in range(plan.rounds):
        for load in order.sample((QUIET, INGESTING), 2):
            done = meter.quiet(number) if load == QUIET else meter.ingesting(number)
            slices.append(done)
            tell(f"round {number + 1} of {plan.rounds}, {load}: {_line(done)}")
    return slices


def _line(done: Slice) -> str:
    latency = f"median {done.latency_p50_ms:.1f} ms, p99 {done.latency_p99_ms:.1f} ms"
    text = f"{done.queries_per_second:.0f} queries/s, {latency}"
    if done.load == QUIET:
        return text
    arrived = f"{done.catalogued_per_second:.0f} documents/s, the last one found after {done.found_after_seconds:.1f} s"
    return f"{text}; {arrived}"


def summarise(plan: Plan, dataset: dict[str, Any], slices: Sequence[Slice]) -> dict[str, Any]:
    """Return the contents of the result, as plain JSON values."""
    quiet = [one for one in slices if one.load == QUIET]
    ingesting = [one for one in slices if one.load == INGESTING]

    def ratio(name: str) -> dict[str, float | None]:
        pairs = [getattr(b, name) / getattr(a, name) for a, b in zip(quiet, ingesting, strict=True)]
        return estimates.median(pairs, plan.seed).plain(_DIGITS)

    def value(name: str, of: Sequence[Slice]) -> dict[str, float | None]:
        return estimates.median([getattr(one, name) for one in of], plan.seed).plain(_DIGITS)

    searches = ("queries_per_second", "latency_p50_ms", "latency_p99_ms")
    documents = (
        "offered_per_second", "catalogued_per_second", "step_p99_ms", "behind_seconds", "found_after_seconds",
    )  # fmt: skip
    return {
        "size": {**dataset, **asdict(plan)},
        "machine": summary.machine(),
        "documents": sum(one.documents for one in ingesting),
        QUIET: {name: value(name, quiet) for name in searches},
        INGESTING: {name: value(name, ingesting) for name in (*searches, *documents)},
        "ratio": {name: ratio(name) for name in searches},
        "slices": [asdict(one) for one in slices],
    }


_ROWS = {
    "queries_per_second": "queries per second",
    "latency_p50_ms": "latency of a search, median, ms",
    "latency_p99_ms": "latency of a search, 99th percentile, ms",
    "offered_per_second": "documents put into the directories per second",
    "catalogued_per_second": "documents catalogued per second",
    "step_p99_ms": "a step of the catalog, 99th percentile, at most, ms",
    "behind_seconds": "until all are catalogued, after the last one has come, s",
    "found_after_seconds": "until a search finds the last one, s",
}


def table(found: dict[str, Any]) -> Table:
    """Return the result as a table."""
    made = tables.bare("", "nothing comes", "documents come", "ratio")
    for name, title in _ROWS.items():
        made.add_row(title, *(_cell(found[part].get(name)) for part in (QUIET, INGESTING, "ratio")))
    return made


def _cell(figure: dict[str, float | None] | None) -> str:
    if figure is None:
        return ""
    value = f"{figure['value']:.4g}"
    return value if figure["low"] is None else f"{value} [{figure['low']:.4g}, {figure['high']:.4g}]"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    add_place(parser)
    seeded = "the corpus, users, documents and the order of slices"
    add_load(parser, rounds=5, slice_seconds=10.0, warm_up_seconds=20.0, seeded=seeded)
    parser.add_argument("--size", choices=DATASETS, default="smoke", help="of the corpus before (smoke)")
    parser.add_argument("--documents-per-second", type=float, default=1000.0, help="documents that come (1000)")


def run(options: Namespace) -> None:
    """Measure, print the table and write the result."""
    place = place_of(options)
    plan = Plan(
        options.rounds, options.slice_seconds, options.warm_up_seconds, options.concurrent_users,
        options.documents_per_second, options.seed,
    )  # fmt: skip
    os.umask(0o022)  # tasks run as other users, and read the documents
    progress = Console(stderr=True)
    tell = partial(progress.print, markup=False, highlight=False)
    place.check()
    with place.locked(), Supervisor() as supervisor:
        generator = corpus.Generator(place.image / "syse" / "syse.jar", corpus.find_java()[0])
        tell("making the corpus")
        shutil.rmtree(place.data, ignore_errors=True)  # an earlier run has added to it
        corpus.make(place.data, DATASETS[options.size], plan.seed, generator, corpus.generate)
        site = indexed.site(place.image, place.output)
        tell("indexing")
        with (
            indexed.serving(site, manifests.read(place.manifests), supervisor) as stack,
            cores.crew(place.data, place.logs, supervisor) as load,
            cores.pinned([stack], supervisor),
        ):
            meter = Meter(stack, load, place.data, plan)
            tell("warming up")
            meter.search(plan.warm_up_seconds)
            slices = measure(meter, plan, tell)
    found = summarise(plan, corpus.describe(place.data), slices)
    summary.write(place.output / RESULT, found)
    Console(width=None if sys.stdout.isatty() else tables.WIDTH).print(table(found))
