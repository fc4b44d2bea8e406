# SPDX-License-Identifier: BSD-2-Clause
"""The processes that generate the load of a measurement: started here, or elsewhere, from where they connect."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.datasets import population
from loadgen.driving import discovery, joining
from loadgen.driving.discovery import Discovery
from loadgen.measuring import cores
from loadgen.plan import PlanError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from loadgen.driving.orders import Crew
    from loadgen.plan import Plan
    from loadgen.stacks.supervisor import Supervisor

_JOIN_SECONDS = 300.0
"""Time in which the pods of a Job have to be scheduled and to connect."""


@dataclass(frozen=True)
class Workers:
    """Starts the load generators of a measurement, or waits for them."""

    discovery: Discovery | None = None
    """Of the metrics of processes that are started here."""
    listener: int | None = None
    """The descriptor of the socket at which others connect."""
    tls: Path | None = None
    """Their certificates: see `loadgen.driving.joining`."""

    @classmethod
    def of(cls, options: Namespace) -> Workers:
        """Return what the command line says."""
        return cls(Discovery.of(options), options.workers_socket, options.workers_tls)

    def crew(
        self, plan: Plan, data: Path, logs: Path, supervisor: Supervisor, tell: Callable[[str], None]
    ) -> AbstractContextManager[Crew]:
        """Return a context of the load generators of a plan; PlanError when nobody starts those that it wants."""
        if not plan.jobs:
            return cores.crew(data, logs, supervisor, plan.workers, self.discovery)
        if self.listener is None or self.tls is None:
            raise PlanError("workers: as: Job needs an operator, which makes the Job; take Process")
        people = population.load(data)
        listener = socket.socket(fileno=self.listener)
        return joining.joined(listener, self.tls, plan.workers, people, seconds=_JOIN_SECONDS, tell=tell)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options about workers."""
    discovery.add_options(parser)
    parser.add_argument("--workers-socket", type=int, metavar="FD", help="where the pods of a Job connect")
    parser.add_argument("--workers-tls", type=Path, metavar="DIR", help="the certificates for that")
