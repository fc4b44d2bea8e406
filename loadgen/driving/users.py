# SPDX-License-Identifier: BSD-2-Clause
"""Locust users for Sys-E: they log in, search a number of times, and leave."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from locust import User, constant, task
from locust.exception import StopUser

from loadgen.driving import addresses
from loadgen.driving.protocol import SIGNED, FrontEnd, ProtocolError, Session
from loadgen.plan import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from locust.env import Environment

    from loadgen.datasets.population import Population


@dataclass
class Scenario:
    """The behaviour of all users of a run, of a pipeline and its service (empty: the address that they dial).

    ``session_length`` is in queries, and ``results`` is how many documents each query asks for. ``mispredicted`` is the
    share of sessions (0 … 1) that connect from another region than their user's home. ``stopping`` asks users to stop
    after their session (an unlimited one: after their query).
    """

    population: Population
    pipeline: str
    service: str = ""
    session_length: int = UNLIMITED
    mispredicted: float = 0.0
    seed: int = 0
    stopping: bool = False
    sessions: int = 0
    """Sessions that have logged in."""
    errors: list[str] = field(default_factory=list)
    results: int = 10
    signed: str = SIGNED
    """What a login signs, as in `FrontEnd`."""

    _users: int = 0

    def next_user(self) -> random.Random:
        """Return the random source of the next user; the same seed gives the same users."""
        self._users += 1
        return random.Random(f"{self.seed}/{self._users}")  # noqa: S311 - reproducible, not secret


class SearchUser(User):
    """Searches as one person after the other, as fast as Sys-E answers."""

    wait_time = constant(0)
    scenario: ClassVar[Scenario]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._random = self.scenario.next_user()
        parts = urlsplit(self.host or environment.host or "")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"--host: expected http://HOST:PORT, got {self.host or environment.host!r}")
        address = (parts.hostname, parts.port or 80)
        scenario = self.scenario
        self._front_end = FrontEnd.dialled(address, scenario.pipeline, scenario.service, scenario.signed)
        self._session: Session | None = None

    @task
    def session(self) -> None:
        """Run one whole session: a fresh connection, a login, the queries, the end."""
        if self.scenario.stopping:
            raise StopUser
        try:
            session = self._open()
            done = 0
            while not self._finished(done):
                text = self.scenario.population.pick_query(self._random)
                self._measured("GET", "/search", partial(session.search, text, self.scenario.results))
                done += 1
        except (OSError, ProtocolError) as error:
            self._report(error)
        finally:
            self._close()

    def on_stop(self) -> None:
        """End the session of a user that Locust stops during the session."""
        self._close()

    def _finished(self, done: int) -> bool:
        length = self.scenario.session_length
        return self.scenario.stopping if length == UNLIMITED else done >= length

    def _open(self) -> Session:
        scenario = self.scenario
        person = scenario.population.pick_person(self._random)
        region = person.region
        if self._random.random() < scenario.mispredicted:
            region = scenario.population.other_region(region, self._random)
        number = self._random.randrange(1 << 16)
        near = addresses.is_loopback(self._front_end.address[0])
        source = addresses.source_address(region, number) if near else ""
        self._session = session = Session(self._front_end, source)
        self._measured("POST", "/session", partial(session.login, person))
        scenario.sessions += 1
        return session

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _measured(self, method: str, name: str, request: Callable[[], object]) -> None:
        started = time.perf_counter()
        error: Exception | None = None
        try:
            request()
        except (OSError, ProtocolError) as caught:
            error = caught
            raise
        finally:
            self.environment.events.request.fire(
                request_type=method,
                name=name,
                response_time=(time.perf_counter() - started) * 1000,
                response_length=0,
                exception=error,
                context={},
            )

    def _report(self, error: Exception) -> None:
        """Keep a few distinct errors for the report, and wait, so that a dead server causes no busy loop."""
        text = f"{type(error).__name__}: {error}"
        if text not in self.scenario.errors and len(self.scenario.errors) < 5:  # noqa: PLR2004 - a few examples do
            self.scenario.errors.append(text)
        time.sleep(0.2)  # Locust has patched sleep to yield to the other users
