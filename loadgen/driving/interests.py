# SPDX-License-Identifier: BSD-2-Clause
"""A Locust user who searches, opens results, has topics made of both, and sees advertisements about them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, ClassVar

import gevent
from locust import task
from locust.exception import StopUser

from loadgen.driving import addresses
from loadgen.driving.beside import MOST
from loadgen.driving.metrics import ANY, CHOSEN
from loadgen.driving.protocol import FrontEnd, ProtocolError, logged_in
from loadgen.driving.visitor import Visitor

if TYPE_CHECKING:
    from locust.env import Environment

    from loadgen.datasets.population import Person, Population
    from loadgen.driving.beside import Interests
    from loadgen.driving.visitor import Slice


class InterestsUser(Visitor):
    """Is one user after the other: searches, opens a result, has topics made, and searches again."""

    fixed_count = 1
    interests: ClassVar[Interests]
    slice: ClassVar[Slice]
    people: ClassVar[Population]
    search: ClassVar[FrontEnd]
    """The search service."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        interests, run = self.interests, self.slice
        self._front_end = FrontEnd.dialled(addresses.read(interests.host), run.pipeline, interests.service)
        self._random = random.Random(run.seed)  # noqa: S311 - reproducible, not secret
        self._pauses = run.pauses(self._random, interests.visits)

    @task
    def visit(self) -> None:
        """Be the next user."""
        pause = next(self._pauses, None)
        if pause is None:
            raise StopUser
        gevent.sleep(pause)
        person, query = self.people.pick_person(self._random), self._random.choice(self.interests.queries)
        counted = self.slice.counted
        try:
            with logged_in(self.search, person) as session:
                for result in session.search(query)["results"][:1]:
                    session.click(result["id"])
            topics, _ = self.measured("POST", "/topics", lambda: self._topics(person), counted.topics)
            with logged_in(self.search, person) as session:
                shown = session.search(query)["advertisement"]
            if topics:
                about = self.interests.advertisements.get(shown)
                counted.advertisements[CHOSEN if about in topics else ANY] += 1
        except (OSError, ProtocolError) as error:
            self.slice.note(f"topics of {person.name}: {error}")

    def _topics(self, person: Person) -> list[str]:
        with logged_in(self._front_end, person) as session:
            topics = session.topics()
        if len(topics) > MOST or not set(topics) <= set(self.interests.advertisements.values()):
            raise ProtocolError(f"POST /topics: expected up to {MOST} known topics, got {topics!r:.200}")
        return topics
