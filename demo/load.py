# SPDX-License-Identifier: BSD-2-Clause
"""Searches on all members of a pool and shows their answers: sessions by which a rollout can be judged.

python -m demo.load [--pool syse] [--data out/demo/quick/data]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table

from demo import overlay, workspace
from demo.kubernetes import Cluster, KubernetesError
from loadgen.datasets import population
from loadgen.driving import addresses
from loadgen.driving.protocol import FrontEnd, ProtocolError, Session
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.datasets.population import Population

_ROOT = Path(__file__).resolve().parent.parent
_QUERIES = 4
_SHOW_SECONDS = 1.0
_PLAIN_SHOW_SECONDS = 10.0
_FAILED_WAIT_SECONDS = 0.5


@dataclass
class Tally:
    """The answers of one member."""

    sessions: int = 0
    queries: int = 0
    results: int = 0
    withheld: int = 0
    """Results of the engine that the member's worker was not allowed to read."""
    failures: int = 0
    """Sessions that were refused or ended early, as happens when bundles are swapped."""


def visit(front_end: FrontEnd, people: Population, source: random.Random, tally: Tally) -> None:
    """Have one session as a random person, from the person's home region."""
    person = people.pick_person(source)
    session = Session(front_end, addresses.source_address(person.region, source.randrange(200)))
    try:
        session.login(person)
        for _ in range(_QUERIES):
            answer = session.search(people.pick_query(source))
            tally.queries += 1
            tally.results += len(answer["results"])
            tally.withheld += int(answer.get("withheld") or 0)
        tally.sessions += 1
    finally:
        session.close()


def members(pool: str) -> dict[str, str]:
    """Return the addresses of a pool's members by name; KubernetesError when it has none."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        raise KubernetesError("KUBECONFIG is not set: set it as `make demo KEEP=1` says")
    cluster = Cluster(_ROOT / "build" / "bin" / "devcluster", Path(kubeconfig), "default", lambda: None)
    rows = (cluster.get("jailpool", pool).get("status") or {}).get("members") or []
    if not rows:
        raise KubernetesError(f"JailPool {pool} has no members: wait until `kubectl get jailpool {pool}` shows one")
    return {row["name"]: row["address"] for row in rows}


def table(tallies: dict[str, Tally]) -> Table:
    """Return a table of the members' answers so far."""
    made = Table(title="searches, by member (Ctrl-C ends)")
    for heading in ("member", "sessions", "queries", "results", "withheld", "withheld %", "broken off"):
        made.add_column(heading, justify="left" if heading == "member" else "right", overflow="fold")
    for name, tally in tallies.items():
        share = 100 * tally.withheld / max(tally.results + tally.withheld, 1)
        figures = (tally.sessions, tally.queries, tally.results, tally.withheld)
        made.add_row(name, *map(str, figures), f"{share:.1f}", str(tally.failures))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Search until a signal; return 0 after it, 1 when there is nothing to search."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pool", default=overlay.POOL, help="name of the JailPool")
    output = workspace.default_output(_ROOT)
    parser.add_argument("--data", type=Path, default=newest_data(output), help="data directory of the demo")
    parser.add_argument("--users", type=int, default=2, help="users at a time on each member")
    options = parser.parse_args(arguments)
    try:
        people, hosts = population.load(options.data), members(options.pool)
    except (LoadgenError, OSError) as error:
        print(f"demo.load: {error}", file=sys.stderr)
        return 1
    _run(people, hosts, options.users)
    return 0


def _run(people: Population, hosts: dict[str, str], users: int) -> None:
    tallies = {name: Tally() for name in hosts}
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threads = [
        threading.Thread(
            target=_search,
            args=(FrontEnd.dialled((address, overlay.PORT), overlay.PIPELINE), people, tallies[name], user, stop),
            daemon=True,
        )
        for name, address in hosts.items()
        for user in range(users)
    ]
    for thread in threads:
        thread.start()
    console = Console()
    if console.is_terminal:
        with Live(table(tallies), console=console) as live:
            while not stop.wait(_SHOW_SECONDS):
                live.update(table(tallies))
    else:
        while not stop.wait(_PLAIN_SHOW_SECONDS):
            console.print(table(tallies))


def _search(front_end: FrontEnd, people: Population, tally: Tally, user: int, stop: threading.Event) -> None:
    source = random.Random(f"{front_end.service}/{user}")  # noqa: S311 - reproducible, not secret
    while not stop.is_set():
        try:
            visit(front_end, people, source, tally)
        except (OSError, ProtocolError):
            tally.failures += 1
            stop.wait(_FAILED_WAIT_SECONDS)


def newest_data(output: Path) -> Path:
    """Return the data directory that the demo made last in its output directory."""
    return max(output.glob("*/data"), key=os.path.getmtime, default=output / "quick" / "data")


if __name__ == "__main__":
    sys.exit(main())
