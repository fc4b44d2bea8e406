# SPDX-License-Identifier: BSD-2-Clause
"""Measures what enforcement costs with a search engine of known cost, in installations of its own.

python -m loadgen fast --output out/fast --busy-cycles 900000

Sys-E's fast engine picks documents at random from what the user may read, after it has kept a processor busy for so
many cycles. Three installations run at the same time: two in mode baseline, of which the second is the control, and one
under enforcement, whose mode changes from slice to slice. Slices alternate in random order. The command prints a table,
and writes results.json, table.txt and samples.csv. It needs root.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadgen.datasets import crowd
from loadgen.measuring import cores, measurement
from loadgen.measuring.options import add_load, add_place, natural, place_of, positive
from loadgen.plan import MODES, PLANS, UNLIMITED, Plan, sessions
from loadgen.results import summary, tables
from loadgen.results.samples import SampleFile
from loadgen.stacks import launcher, light, manifests
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from loadgen.measuring.place import Place
    from loadgen.results.samples import Sample

_PIPELINE, _HOST = "syse", "127.0.0.1"
_LENGTHS = (1, 4, 16, 64, 256, UNLIMITED)
"""Those of the paper's measurement with its fast engine."""
_SEEDED = "users and the order of slices"


def measure(
    place: Place, plan: Plan, busy_cycles: int, supervisor: Supervisor, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Measure on what `Place.prepared` has made; return the contents of results.json."""
    documents = light.derive(manifests.read(place.manifests), _PIPELINE, busy_cycles)
    serving = (light.ENGINE, light.FRONT_END)
    with launcher.launching(place.site, documents, _PIPELINE, supervisor, serving) as launched:
        stacks = {}
        for variant in (*launcher.TWINS, launcher.CONFINED):
            tell(f"starting {variant.name}")
            stack = stacks[variant.name] = launched.launch(variant, (_HOST, free_port(_HOST)))
            stack.analyze()
            stack.serve()
        confined = stacks.pop(launcher.CONFINED.name)
        with (
            cores.crew(place.data, place.logs, supervisor) as driver,
            cores.pinned([confined, *stacks.values()], supervisor),
        ):
            meter = measurement.Meter(driver, dict.fromkeys(plan.modes, confined) | stacks, plan)
            tell("warming up")
            meter.warm_up()
            measured = measurement.run(
                plan, meter, partial(_record, SampleFile(place.output / "samples.csv"), plan, tell)
            )
    return summary.summarise(plan, {"busyCycles": busy_cycles}, measured)


def _record(file: SampleFile, plan: Plan, tell: Callable[[str], None], sample: Sample) -> None:
    file.append(sample)
    length = sessions(sample.session_length)
    tell(
        f"slice {sample.order + 1} of {plan.slices}: {sample.mode}, {length}: {sample.queries_per_second:.0f} queries/s"
    )


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    add_place(parser)
    add_load(parser, rounds=PLANS["quick"].rounds, slice_seconds=3.0, warm_up_seconds=10.0, seeded=_SEEDED)
    parser.add_argument("--busy-cycles", type=natural, default=0, help="what a search costs, in cycles (0)")
    parser.add_argument("--session-lengths", type=natural, nargs="+", default=_LENGTHS, help="queries, 0: unlimited")
    parser.add_argument("--users", type=positive, default=crowd.Crowd().users, help="users in the data (400)")


def run(options: Namespace) -> None:
    """Measure, print the table and write the results."""
    place = place_of(options)
    plan = Plan(
        "fast",
        rounds=options.rounds,
        slice_seconds=options.slice_seconds,
        warm_up_seconds=options.warm_up_seconds,
        session_lengths=tuple(options.session_lengths),
        concurrent_users=options.concurrent_users,
        modes=MODES,
        seed=options.seed,
    )
    os.umask(0o022)  # tasks run as other users, and read the documents
    progress = Console(stderr=True)
    place.check()
    with place.prepared(crowd.Crowd(users=options.users)), Supervisor() as supervisor:
        tell = partial(progress.print, markup=False, highlight=False)
        found = measure(place, plan, options.busy_cycles, supervisor, tell)
        summary.write(place.output / "results.json", {**found, **tables.figures(found)})
        (place.output / "table.txt").write_text(tables.plain(found))
    tables.show(found, Console())
