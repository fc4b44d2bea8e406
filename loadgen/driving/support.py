# SPDX-License-Identifier: BSD-2-Clause
"""A Locust user for Sys-E's support: employees read documents of users, each after an entry in the log of accesses."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, ClassVar

import gevent
from locust import task
from locust.exception import StopUser

from loadgen.driving import addresses
from loadgen.driving.protocol import FrontEnd, ProtocolError, logged_in
from loadgen.driving.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from locust.env import Environment

    from loadgen.datasets.population import Person
    from loadgen.driving.beside import Desk, Document
    from loadgen.driving.visitor import Slice


class SupportUser(Visitor):
    """Has one session after the other, each of an employee who reads one document; ends after the last one."""

    fixed_count = 1
    desk: ClassVar[Desk]
    slice: ClassVar[Slice]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._front_end = FrontEnd.dialled(addresses.read(self.desk.host), self.slice.pipeline, self.desk.service)
        self._left = self._accesses()

    @task
    def access(self) -> None:
        """Log in as an employee, and read a document."""
        following = next(self._left, None)
        if following is None:
            raise StopUser
        (employee, document), pause = following
        gevent.sleep(pause)
        counted = self.slice.counted

        def read() -> None:
            with logged_in(self._front_end, employee) as session:
                shown = session.document(document.number, document.name)
            if shown["title"] != document.title:
                raise ProtocolError(f"/document: expected {document.title!r}, got {shown['title']!r:.200}")

        try:
            _, seconds = self.measured("GET", "/document", read, counted.accesses)
        except (OSError, ProtocolError) as error:
            self.slice.note(f"{employee.name} reads {document.name}: {error}")
        else:
            counted.access_times.add(seconds)

    def _accesses(self) -> Iterator[tuple[tuple[Person, Document], float]]:
        """Yield who reads what, in no order, and after which pause."""
        source = random.Random(self.slice.seed)  # noqa: S311 - reproducible, not secret
        accesses = self.desk.accesses
        source.shuffle(accesses)
        return zip(accesses, self.slice.pauses(source, len(accesses)), strict=True)
