# SPDX-License-Identifier: BSD-2-Clause
"""The orders for load generators' processes, and their answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, Self

from loadgen.driving.beside import Desk, Interests
from loadgen.driving.metrics import FAILED, OK, Series
from loadgen.driving.protocol import SIGNED
from loadgen.errors import LoadgenError
from loadgen.phases import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from loadgen.driving.metrics import Times

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Order:
    """One slice of load on a pipeline at the URL ``host``. Logins sign ``signed`` with ``service``, as in `FrontEnd`.

    ``session_length`` is in queries, 0 for one session per user, -1 for sessions that only log in. Sessions are of
    people whose names begin with ``people``; each query asks for up to ``results`` documents.
    """

    host: str
    pipeline: str
    service: str
    session_length: int
    seconds: float
    users: int
    seed: int
    mispredicted: float = 0.0
    people: str = ""
    results: int = 10
    signed: str = SIGNED
    scenario: str = ""
    mode: str = ""
    """What is measured: a label of the metrics."""
    phases: tuple[Phase, ...] = ()
    """How many of the users there are at each moment; empty: all of them all the time."""
    worker: int = 0
    """Which of the processes that share the load this one is; each has other users."""
    desk: Desk | None = None
    """What the support does meanwhile."""
    interests: Interests | None = None
    """Whose topics are made meanwhile."""

    @classmethod
    def read(cls, line: str | bytes) -> Self:
        """Read an order as `plain` writes it."""
        found: dict[str, Any] = json.loads(line)
        found["phases"] = tuple(Phase(**phase) for phase in found["phases"])
        found["desk"] = Desk.read(found["desk"]) if found["desk"] else None
        found["interests"] = Interests.read(found["interests"]) if found["interests"] else None
        return cls(**found)

    def plain(self) -> str:
        """Return the order as a line."""
        return json.dumps(asdict(self), default=bytes.hex)

    def shares(self, workers: int) -> list[Order]:
        """Divide the users among processes; with fewer users than processes, some get no order.

        What is done beside searches is for the first one.
        """
        most, more = divmod(self.users, workers)
        users = [most + (number < more) for number in range(workers)]
        shares = [replace(self, users=count, worker=number) for number, count in enumerate(users) if count]
        return [*shares[:1], *(replace(share, desk=None, interests=None) for share in shares[1:])]


@dataclass
class Outcome:
    """The result of a slice."""

    seconds: float
    driver_cpu_seconds: float
    """CPU time of the load generator, of its busiest process if there are several."""
    counted: Series = field(default_factory=Series)
    errors: list[str] = field(default_factory=list)
    """A few distinct ones."""

    @property
    def queries(self) -> int:
        """Searches that were answered."""
        return self.counted.queries[OK]

    @property
    def sessions(self) -> int:
        """Sessions that have logged in."""
        return self.counted.sessions[OK]

    @property
    def failures(self) -> int:
        """Searches and logins that failed."""
        return self.counted.queries[FAILED] + self.counted.sessions[FAILED]

    @property
    def search_milliseconds(self) -> dict[str, float]:
        """Percentiles by name ("p50", "p90", "p99"); empty without a search."""
        return milliseconds(self.counted.query_times)

    @property
    def login_milliseconds(self) -> dict[str, float]:
        """The same of logins."""
        return milliseconds(self.counted.login_times)

    def plain(self) -> str:
        """Return the outcome as a line."""
        own = {"seconds": self.seconds, "driver_cpu_seconds": self.driver_cpu_seconds, "errors": self.errors}
        return json.dumps({**own, "counted": self.counted.plain()})

    @classmethod
    def read(cls, line: str) -> Self:
        """Read an outcome as `plain` writes it."""
        found: dict[str, Any] = json.loads(line)
        outcome = cls(float(found["seconds"]), float(found["driver_cpu_seconds"]), errors=list(found["errors"]))
        outcome.counted.add(found["counted"])
        return outcome


def milliseconds(times: Times) -> dict[str, float]:
    """Return percentiles of times by name ("p50", "p90", "p99"); empty without any."""
    return {name: round(times.percentile(share) * 1e3, 4) for name, share in PERCENTILES.items() if times.count}


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Add up what several processes have done at the same time."""
    total = Outcome(
        max(outcome.seconds for outcome in outcomes), max(outcome.driver_cpu_seconds for outcome in outcomes)
    )
    for outcome in outcomes:
        total.counted.add(outcome.counted.plain())
        total.errors += [error for error in outcome.errors if error not in total.errors]
    return total


class DriverError(LoadgenError):
    """A load generator's process ended, or its answer is not an outcome."""


class Driver:
    """Talks to a `loadgen.driving.driver` process. The caller starts and ends the process.

    ``orders`` and ``answers`` are the process's standard input and output, or a connection.
    """

    def __init__(self, orders: IO[str] | None, answers: IO[str] | None, name: str = "load generator") -> None:
        if orders is None or answers is None:
            raise DriverError(f"{name}: started without pipes for its orders and answers")
        self._orders, self._answers, self._name = orders, answers, name
        greeting = self._line()
        if greeting != "ready\n":
            raise DriverError(f"{name}: expected 'ready', got {greeting!r}")

    def run(self, order: Order) -> Outcome:
        """Run one slice; DriverError when the process has ended."""
        self.send(order)
        return self.outcome()

    def send(self, order: Order) -> None:
        """Begin a slice."""
        try:
            self._orders.write(order.plain() + "\n")
            self._orders.flush()
        except OSError as error:
            raise DriverError(f"{self._name}: cannot send an order: {error}") from error

    def outcome(self) -> Outcome:
        """Wait for the end of the slice that was begun."""
        line = self._line()
        try:
            return Outcome.read(line)
        except (KeyError, TypeError, ValueError) as error:
            raise DriverError(f"{self._name}: expected an outcome, got {line[:200]!r} (its log says why)") from error

    def close(self) -> None:
        """Close the process's standard input, so that it ends."""
        self._orders.close()

    def __enter__(self) -> Self:
        """Return the driver itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the driver."""
        self.close()

    def _line(self) -> str:
        try:
            return self._answers.readline()
        except OSError as error:
            raise DriverError(f"{self._name}: the connection is lost: {error}") from error


class Crew:
    """Several drivers, which share the users of each slice. Their counts add up exactly."""

    def __init__(self, drivers: Sequence[Driver]) -> None:
        self._drivers = drivers

    def run(self, order: Order) -> Outcome:
        """Run one slice; DriverError when one of the processes has ended."""
        shares = order.shares(len(self._drivers))
        busy = self._drivers[: len(shares)]
        for driver, share in zip(busy, shares, strict=True):
            driver.send(share)
        return together([driver.outcome() for driver in busy])
