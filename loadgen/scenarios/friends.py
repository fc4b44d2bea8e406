# SPDX-License-Identifier: BSD-2-Clause
"""Locust users whose friendships end and begin again while they search."""

from __future__ import annotations

import itertools
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gevent
from locust.runners import MasterRunner, WorkerRunner

from loadgen.driving.metrics import REVOKED
from loadgen.driving.users import SearchUser
from loadgen.errors import LoadgenError
from loadgen.scenarios import friendships
from loadgen.scenarios.friendships import FriendshipError, Friendships
from loadgen.stacks.monitor import Monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from locust.runners import Runner

    from loadgen.datasets.population import Person, Population
    from loadgen.driving.protocol import Session
    from loadgen.scenarios.friendships import Friendship
    from loadgen.scenarios.targets import Target

PAIRS = 8
"""Friendships that change at the same time, in each process."""

PROCESSES = 64
"""The most processes that can have friendships of their own."""


class Friend(SearchUser):
    """Searches as one friend after the other for what the friend's friend has written for friends."""

    friendships: ClassVar[Friendships]

    def pick_person(self) -> Person:
        """Return who logs in next."""
        self._pair = self.friendships.pick()
        self._answered = self._pair.answered
        self._logging_in = time.perf_counter()
        return self._pair.friend

    def pick_query(self) -> str:
        """Return a title of a document that is there for friends."""
        return self.random.choice(self._pair.titles)

    def result_of(self, error: Exception | None) -> str:
        """Return the result of a request. That a session ends with its friendship is no failure."""
        if error and self.friendships.immediate and self._pair.asked != self._answered:
            return REVOKED
        return super().result_of(error)

    def search(self, session: Session) -> dict[str, Any]:
        """Search, and look through what is shown."""
        pair, asked = self._pair, time.perf_counter()
        answer = super().search(session)
        since = asked if self.friendships.immediate else self._logging_in
        counted = self.behaviour.counted
        counted.checked += pair.would_tell(since)
        for violation in pair.violations(answer["results"], since):
            counted.violations += 1
            self.environment.events.request.fire(
                request_type="CHECK",
                name="former friends",
                response_time=0,
                response_length=0,
                exception=violation,
                context={},
            )
        return answer


def prepare(runner: Runner, target: Target, people: Population) -> Callable[[], None]:
    """Return what lets friendships change from the start of a run to its end; LoadgenError when they cannot change."""
    if target.socket is None:
        raise FriendshipError("facts are changed at the monitor's socket: name it with --socket PATH")
    monitor = Monitor(Path("shai"), target.socket)
    immediate = monitor.pipeline(target.pipeline)["revocation"] == "immediate"
    if isinstance(runner, MasterRunner):
        return lambda: None  # its workers do
    pairs = list(itertools.islice(friendships.find(target.data, people), PAIRS * PROCESSES))
    if not pairs:
        raise FriendshipError(f"{target.data}: nobody has both friends and documents for them; make the corpus again")
    changing: list[gevent.Greenlet[..., None]] = []

    def begin() -> None:
        own = _share(pairs, runner)
        Friend.friendships = Friendships(own, immediate, monitor)
        changing.append(gevent.spawn(_alternate, runner, Friend.friendships))

    def end(**_: Any) -> None:
        gevent.killall(changing)
        changing.clear()

    runner.environment.events.test_stop.add_listener(end)  # type: ignore[no-untyped-call]
    return begin


def _share(pairs: Sequence[Friendship], runner: Runner) -> list[Friendship]:
    """Return the friendships that this process changes, which no other one does."""
    if isinstance(runner, WorkerRunner):
        pairs = pairs[runner.worker_index % PROCESSES :: PROCESSES]
    return list(pairs[:PAIRS])


def _alternate(runner: Runner, own: Friendships) -> None:
    try:
        own.alternate()
    except LoadgenError as error:
        runner.log_exception("local", str(error), traceback.format_exc())
