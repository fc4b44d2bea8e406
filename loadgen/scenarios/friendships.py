# SPDX-License-Identifier: BSD-2-Clause
"""Friendships that end and begin again while the friends search, and the check that no former friend is shown anything.

From the moment in which the monitor has answered that a friendship has ended, its owner's documents for friends must
not be shown to the former friend any more: with ``revocation: immediate`` in no search that is sent later, with
``lazy`` in no session that logs in later. A search that was sent before may show them or not.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import gevent

from loadgen.datasets import documents, population
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadgen.datasets.population import Person, Population
    from loadgen.stacks.monitor import Monitor

HOLD_SECONDS = 1.0
"""How long friends stay friends, and former friends former ones."""

_CHANGE_SECONDS = 300.0
_VISIBILITY = "friends"
_DOCUMENTS = "corpus"
_LONGEST_TITLE = 256
"""In bytes: Sys-E cuts longer ones."""


class FriendshipError(LoadgenError):
    """Friendships cannot be changed, or there are none; the text says why."""


class ViolationError(LoadgenError):
    """A former friend was shown a document; the text has the user and the document."""


@dataclass
class Friendship:
    """What ``owner`` shows friends only is shown to ``friend``."""

    owner: str
    friend: Person
    titles: Sequence[str]
    """Of the owner's documents for friends: what the friend searches for."""
    ended: float | None = None
    """When the monitor's answer said that it has ended; None while they are friends, and while that is uncertain."""
    asked: int = 0
    answered: int = 0
    """How often it was to end, and how often the monitor has answered that it has."""
    shown: set[str] = field(default_factory=set)
    """The ids of the owner's documents that the friend was shown."""
    data: Path | None = None
    """The data directory with all documents; None when no two have the same title."""

    @property
    def seen(self) -> bool:
        """Whether the friend was shown a document of the owner's: only then it means something to be shown none."""
        return bool(self.shown)

    @property
    def fact(self) -> dict[str, Any]:
        """The fact, as the monitor's API takes it."""
        return {"conduit": f"friends/{self.owner}", "says": "friend", "tuple": [self.friend.name]}

    def would_tell(self, since: float) -> bool:
        """Whether a search whose rights are those of the moment ``since`` could show what it must not."""
        return self.seen and self.ended is not None and since > self.ended

    def violations(self, results: Sequence[dict[str, Any]], since: float) -> list[ViolationError]:
        """Return what must not be among the results of a search whose rights are those of the moment ``since``."""
        if self.ended is None:
            known = [one for one in results if self._claimed(one) and one["title"] in self.titles]
            self.shown.update(str(one["id"]) for one in known)
            return []
        if since <= self.ended:
            return []
        own = [one for one in results if self._is_own(one)]
        return [
            ViolationError(
                f"{self.friend.name} was shown document {one['id']} “{one['title']}” of {self.owner}, "
                "who is no friend any more"
            )
            for one in own
        ]

    def _claimed(self, result: dict[str, Any]) -> bool:
        return bool(result["owner"] == self.owner and result["visibility"] == _VISIBILITY)

    def _is_own(self, result: dict[str, Any]) -> bool:
        """Whether a result is one of the owner's documents for friends, whatever the service says of its owner."""
        if self._claimed(result) or str(result["id"]) in self.shown:
            return True
        return result["title"] in self.titles and result["title"] not in self._shared

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The titles that other documents have, too. All documents are read, so only when a result is in doubt."""
        if self.data is None:
            return frozenset()
        found = gevent.get_hub().threadpool.apply(_titles_elsewhere, (self.data, self.owner))
        return frozenset(self.titles) & found


@dataclass
class Friendships:
    """The friendships of this process. ``immediate``: revocation ends live sessions."""

    pairs: Sequence[Friendship]
    immediate: bool
    monitor: Monitor
    _picked: int = 0

    def pick(self) -> Friendship:
        """Return one after the other."""
        self._picked += 1
        return self.pairs[self._picked % len(self.pairs)]

    def end(self) -> None:
        """End all of them; they have ended when this returns."""
        for pair in self.pairs:
            pair.asked += 1
        self._change("remove", [pair.fact for pair in self.pairs])
        now = time.perf_counter()
        for pair in self.pairs:
            pair.ended = now
            pair.answered = pair.asked

    def restore(self) -> None:
        """Make them all friends again, whoever is no friend now."""
        for pair in self.pairs:
            pair.ended = None
        self._change("add", [pair.fact for pair in self.pairs])

    def alternate(self) -> None:
        """End and restore them for ever. They are friends when the greenlet of this is killed."""
        try:
            while True:
                self.restore()  # at first, too: a run that was killed could not
                gevent.sleep(HOLD_SECONDS)
                self.end()
                gevent.sleep(HOLD_SECONDS)
        finally:
            self.restore()

    def _change(self, how: str, facts: Sequence[dict[str, Any]]) -> None:
        change_facts(self.monitor, {how: facts})


def find(data: Path, people: Population) -> Iterator[Friendship]:
    """Yield one friendship of each user of a data directory who has documents for friends."""
    for owner, names in population.friends(data):
        friend = next((name for name in names if name in people), None)
        if friend is not None:
            found = (title for _, title in documents.titled(data, _written(owner)))
            titles = [title for title in found if len(title.encode()) < _LONGEST_TITLE]
            if titles:
                yield Friendship(owner, people[friend], titles, data=data)


def _written(owner: str) -> str:
    """Return the folder of a data directory with the documents that a user has written for friends."""
    return f"{_DOCUMENTS}/{_VISIBILITY}/{owner}"


def _titles_elsewhere(data: Path, owner: str) -> frozenset[str]:
    own = data / _written(owner)
    return frozenset(title for path, title in documents.titled(data, _DOCUMENTS) if path.parent != own)


def change_facts(monitor: Monitor, change: dict[str, Any]) -> dict[str, Any]:
    """Change facts by the monitor's API, and return its answer; FriendshipError when it refuses."""
    connection = monitor.connect()
    connection.timeout = _CHANGE_SECONDS
    try:
        connection.request("POST", "/v1/facts", json.dumps(change), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read().decode()
    except OSError as error:
        raise FriendshipError(f"the monitor at {monitor.socket} does not change facts: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:  # noqa: PLR2004 - OK
        raise FriendshipError(f"the monitor at {monitor.socket} does not change facts: {answer.status}: {body[:200]}")
    found: dict[str, Any] = json.loads(body)
    return found
