# SPDX-License-Identifier: BSD-2-Clause
"""Documents that come into the directories of a running Sys-E, whole: each is written beside them and moved there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PUBLIC, PRIVATE, FRIENDS = "public", "private", "friends"
NOBODY = "-"

_STEP_SECONDS = 0.05
_WORDS = 60


@dataclass(frozen=True)
class Arrival:
    """A document to come. ``place`` is relative to the data directory."""

    place: str
    text: str

    def put(self, data: Path) -> None:
        """Move it to its place, in place of what is there."""
        destination = data / self.place
        destination.parent.mkdir(parents=True, exist_ok=True)
        staging = data / "staging"  # of the same file system, and no directory of documents
        staging.mkdir(exist_ok=True)
        written = staging / destination.name
        written.write_text(self.text)
        written.replace(destination)


def document(place: str, owner: str, visibility: str, title: str, body: str) -> Arrival:
    """Return a document as Sys-E writes it; ``owner`` is `NOBODY` for a public one."""
    return Arrival(place, f"title: {title}\nowner: {owner}\nvisibility: {visibility}\n\n{body}\n")


def stream(prefix: str, owners: Sequence[str], words: Sequence[str], source: random.Random) -> Iterator[Arrival]:
    """Yield documents with ``words`` in the directories of their owners. Titles and names begin with ``prefix``."""
    number = 0
    while True:
        number += 1
        visibility = source.choice((PUBLIC, PRIVATE, FRIENDS))
        owner = NOBODY if visibility == PUBLIC else source.choice(owners)
        folder = visibility if visibility == PUBLIC else f"{visibility}/{owner}"
        body = " ".join(source.choices(words, k=_WORDS))
        place = f"corpus/{folder}/{prefix}{number}.txt"
        yield document(place, owner, visibility, f"{prefix}{number}", body)


def put_evenly(arrivals: Iterator[Arrival], data: Path, per_second: float, seconds: float) -> int:
    """Put documents at a rate for some time; return their number, which is less if the machine is too slow."""
    begun = time.monotonic()
    put = 0
    while (elapsed := time.monotonic() - begun) < seconds:
        due = int(elapsed * per_second)
        while put < due:
            next(arrivals).put(data)
            put += 1
        time.sleep(_STEP_SECONDS)
    return put
