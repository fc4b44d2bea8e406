# SPDX-License-Identifier: BSD-2-Clause
"""Locust users for Sys-E: they log in, search a number of times, and leave."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from locust import task
from locust.exception import StopUser
from locust.user.task import LOCUST_STATE_STOPPING

from loadgen.driving import addresses
from loadgen.driving.metrics import FAILED, OK, Series
from loadgen.driving.protocol import SIGNED, FrontEnd, ProtocolError, Session
from loadgen.driving.visitor import Visitor
from loadgen.plan import UNLIMITED

if TYPE_CHECKING:
    from locust.env import Environment

    from loadgen.datasets.population import Person, Population

_ERRORS = 5


@dataclass
class Behaviour:
    """What all users of a run do, with a pipeline and its service (empty: the address that they dial).

    ``session_length`` is in queries, and ``results`` is how many documents each query asks for. ``mispredicted`` is the
    share of sessions (0 … 1) that connect from another region than their user's home. ``stopping`` asks users to stop
    after their session (an unlimited one: after their query).
    """

    population: Population
    pipeline: str
    service: str = ""
    session_length: int = UNLIMITED
    mispredicted: float = 0.0
    seed: int | str = 0
    stopping: bool = False
    errors: list[str] = field(default_factory=list)
    """A few distinct ones."""
    results: int = 10
    signed: str = SIGNED
    """What a login signs, as in `FrontEnd`."""
    counted: Series = field(default_factory=Series)
    """Where requests are counted."""

    _users: int = 0

    def next_user(self) -> random.Random:
        """Return the random source of the next user; the same seed gives the same users."""
        self._users += 1
        return random.Random(f"{self.seed}/{self._users}")  # noqa: S311 - reproducible, not secret

    def note(self, error: Exception) -> None:
        """Keep an error for the report."""
        text = f"{type(error).__name__}: {error}"
        if text not in self.errors and len(self.errors) < _ERRORS:
            self.errors.append(text)


class SearchUser(Visitor):
    """Searches as one person after the other, as fast as Sys-E answers."""

    behaviour: ClassVar[Behaviour]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        behaviour = self.behaviour
        self.random = behaviour.next_user()
        address = addresses.read(self.host or environment.host or "")
        self._front_end = FrontEnd.dialled(address, behaviour.pipeline, behaviour.service, behaviour.signed)
        self._session: Session | None = None

    @task
    def session(self) -> None:
        """Run one whole session: a fresh connection, a login, the queries, the end."""
        if self.behaviour.stopping:
            raise StopUser
        try:
            session = self._open()
            done = 0
            while not self._finished(done):
                self.search(session)
                done += 1
        except (OSError, ProtocolError) as error:
            if self.result_of(error) == FAILED:
                self.behaviour.note(error)
                time.sleep(
                    0.2
                )  # so that a dead server causes no busy loop; Locust has patched it to yield to other users
        finally:
            self._close()

    def on_stop(self) -> None:
        """End the session of a user that Locust stops during the session."""
        self._close()

    def _finished(self, done: int) -> bool:
        length = self.behaviour.session_length
        if length != UNLIMITED:
            return done >= length or self._leaving
        return self.behaviour.stopping or self._leaving

    @property
    def _leaving(self) -> bool:
        """Whether Locust wants fewer users: this one leaves after its query, which is thus answered and counted."""
        return bool(self._state == LOCUST_STATE_STOPPING)

    def pick_person(self) -> Person:
        """Return who logs in next."""
        return self.behaviour.population.pick_person(self.random)

    def pick_query(self) -> str:
        """Return what is searched for next."""
        return self.behaviour.population.pick_query(self.random)

    def result_of(self, error: Exception | None) -> str:
        """Return the result under which a request that ended like this is counted: who may log in may search."""
        return FAILED if error else OK

    def _open(self) -> Session:
        behaviour = self.behaviour
        person = self.pick_person()
        region = person.region
        if self.random.random() < behaviour.mispredicted:
            region = behaviour.population.other_region(region, self.random)
        number = self.random.randrange(1 << 16)
        near = addresses.is_loopback(self._front_end.address[0])
        source = addresses.source_address(region, number) if near else ""
        counted = behaviour.counted
        try:
            self._session = session = Session(self._front_end, source)
        except OSError as error:
            self.tell("POST", "/session", 0.0, error, counted.sessions)
            raise
        _, seconds = self.measured("POST", "/session", partial(session.login, person), counted.sessions)
        counted.login_times.add(seconds)
        return session

    def search(self, session: Session) -> dict[str, Any]:
        """Search once; return the answer."""
        behaviour = self.behaviour
        text = self.pick_query()
        counted = behaviour.counted
        search = partial(session.search, text, behaviour.results)
        answer, seconds = self.measured("GET", "/search", search, counted.queries)
        counted.query_times.add(seconds)
        counted.shown += len(answer["results"])
        counted.withheld += answer.get("withheld", 0)
        return answer

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
