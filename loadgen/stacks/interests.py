# SPDX-License-Identifier: BSD-2-Clause
"""What the search service says of topics: which words are about them, and which advertisements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadgen.datasets import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

TASK = "interests"
"""The task that turns what a user has searched for and opened into topics."""

_WORDS, _ADVERTISEMENTS = "topics.txt", "advertisements.txt"
_WORD = re.compile("[a-z]+")


def words(programs: Path) -> frozenset[str]:
    """Return all words that are about a topic; ``programs`` is the directory of Sys-E's programs."""
    return frozenset(word for _, line in _lines(programs, _WORDS) for word in line.split())


def advertisements(programs: Path) -> dict[str, str]:
    """Return the topic of each advertisement, by its text."""
    return {text: topic for topic, text in _lines(programs, _ADVERTISEMENTS)}


def telling(queries: Sequence[str], about: AbstractSet[str]) -> tuple[str, ...]:
    """Return the queries that have a word about a topic; all if none has."""
    return tuple(query for query in queries if about & set(_WORD.findall(query.lower()))) or tuple(queries)


def _lines(programs: Path, name: str) -> Iterator[tuple[str, str]]:
    for line in files.read(programs, name).splitlines():
        topic, found, text = line.partition(": ")
        if found and not line.startswith("#"):
            yield topic, text
