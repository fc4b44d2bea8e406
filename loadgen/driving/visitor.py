# SPDX-License-Identifier: BSD-2-Clause
"""What all of Locust's users of Sys-E have in common: requests are timed, counted, and told to Locust."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from locust import User, constant

from loadgen.driving.metrics import FAILED, OK, REFUSED
from loadgen.driving.protocol import ProtocolError, RefusedError

if TYPE_CHECKING:
    import random
    from collections import Counter
    from collections.abc import Callable, Iterator

    from loadgen.driving.metrics import Series

_ERRORS = 5
Found = TypeVar("Found")


@dataclass
class Slice:
    """A slice of load with users beside those who search: where they are counted, and how long it takes if it can."""

    pipeline: str
    counted: Series
    seconds: float
    seed: int | str
    errors: list[str] = field(default_factory=list)
    """A few."""

    def note(self, text: str) -> None:
        """Keep an error for the report."""
        if len(self.errors) < _ERRORS:
            self.errors.append(text)

    def pauses(self, source: random.Random, count: int) -> Iterator[float]:
        """Yield how long nobody asks before each of a number of requests, so that they come now and then."""
        for _ in range(count):
            yield source.uniform(0, 2 * self.seconds / count)


class Visitor(User):
    """A user of one of Sys-E's services."""

    abstract = True
    wait_time = constant(0)

    def result_of(self, error: Exception | None) -> str:
        """Return the result under which a request that ended like this is counted."""
        if isinstance(error, RefusedError):
            return REFUSED
        return FAILED if error else OK

    def measured(
        self, method: str, name: str, request: Callable[[], Found], results: Counter[str]
    ) -> tuple[Found, float]:
        """Return the answer to a request and its time in seconds.

        A request that is cut off because Locust ends the user has no result, and is not counted.
        """
        started = time.perf_counter()
        try:
            answer = request()
        except (OSError, ProtocolError) as error:
            self.tell(method, name, time.perf_counter() - started, error, results)
            raise
        seconds = time.perf_counter() - started
        self.tell(method, name, seconds, None, results)
        return answer, seconds

    def tell(self, method: str, name: str, seconds: float, error: Exception | None, results: Counter[str]) -> None:
        """Count a request that has ended, and tell Locust."""
        result = self.result_of(error)
        results[result] += 1
        if result not in {OK, FAILED}:
            return  # Locust knows no other results
        self.environment.events.request.fire(
            request_type=method,
            name=name,
            response_time=seconds * 1000,
            response_length=0,
            exception=error,
            context={},
        )
