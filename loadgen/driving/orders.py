# SPDX-License-Identifier: BSD-2-Clause
"""The orders for the load generator's process, and its answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self

from loadgen.driving.protocol import SIGNED
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType


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


@dataclass(frozen=True)
class Outcome:
    """The result of a slice; percentiles by name ("p50", "p90", "p99"), empty without a request."""

    queries: int
    sessions: int
    failures: int
    seconds: float
    driver_cpu_seconds: float
    errors: list[str] = field(default_factory=list)
    search_milliseconds: dict[str, float] = field(default_factory=dict)
    login_milliseconds: dict[str, float] = field(default_factory=dict)


class DriverError(LoadgenError):
    """The load generator's process ended, or its answer is not an outcome."""


class Driver:
    """Talks to a `loadgen.driving.driver` process. The caller starts and ends the process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        greeting = self._line()
        if greeting != "ready\n":
            raise DriverError(f"load generator: expected 'ready', got {greeting!r}")

    def run(self, order: Order) -> Outcome:
        """Run one slice; DriverError when the process has ended."""
        if self._process.stdin is None:
            raise DriverError("load generator: started without a pipe for its orders")
        try:
            self._process.stdin.write(json.dumps(asdict(order)) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DriverError(f"load generator: cannot send an order: {error}") from error
        line = self._line()
        try:
            return Outcome(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise DriverError(f"load generator: expected an outcome, got {line!r} (its log says why)") from error

    def close(self) -> None:
        """Close the process's standard input, so that it ends."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def __enter__(self) -> Self:
        """Return the driver itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the driver."""
        self.close()

    def _line(self) -> str:
        return self._process.stdout.readline() if self._process.stdout else ""
