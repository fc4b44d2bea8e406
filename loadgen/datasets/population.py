# SPDX-License-Identifier: BSD-2-Clause
"""The demo's users and their queries, as the corpus generator wrote them.

A data directory holds ``keys.jsonl`` (demo login keys), ``queries.txt`` (titles by popularity) and
``facts/population.jsonl`` (home regions, among other facts). Those who work for the service have their demo login keys
in ``staff.jsonl``.
"""

from __future__ import annotations

import bisect
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.datasets import files
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ZIPF_EXPONENT = 1.0
"""Popularity of the query at rank r is proportional to 1 / r ** ZIPF_EXPONENT."""


class PopulationError(LoadgenError):
    """What is in a data directory is incomplete or damaged; the text names the file and the line."""


@dataclass(frozen=True, slots=True)
class Person:
    """A user who can log in. ``seed`` is the 32-byte Ed25519 seed of the user's demo key."""

    name: str
    seed: bytes
    region: str


class Population:
    """All users who can log in, and their queries."""

    def __init__(self, people: Sequence[Person], queries: Sequence[str]) -> None:
        if not people or not queries:
            raise PopulationError("a population needs at least one person and one query")
        self.people = people
        self.queries = queries
        self.regions = sorted({person.region for person in people})
        self._by_name = {person.name: person for person in people}
        weights = (1.0 / rank**ZIPF_EXPONENT for rank in range(1, len(queries) + 1))
        self._cumulative = list(itertools.accumulate(weights))

    def __getitem__(self, name: str) -> Person:
        """Return the person of that name; KeyError when there is none."""
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        """Whether there is a person of that name."""
        return name in self._by_name

    def named(self, prefix: str) -> Population:
        """Return the population of those whose names begin with ``prefix``; PopulationError when there is nobody."""
        return Population([person for person in self.people if person.name.startswith(prefix)], self.queries)

    def pick_person(self, source: random.Random) -> Person:
        """Pick uniformly, as in the paper."""
        return source.choice(self.people)

    def pick_query(self, source: random.Random) -> str:
        """Pick by popularity: the first line of queries.txt is the most popular."""
        point = source.random() * self._cumulative[-1]
        return self.queries[bisect.bisect_right(self._cumulative, point)]

    def other_region(self, home: str, source: random.Random) -> str:
        """Pick a region other than ``home``; ``home`` itself when there is only one."""
        return source.choice([region for region in self.regions if region != home] or [home])


_KEYS, _QUERIES, _FACTS = FILES = ("keys.jsonl", "queries.txt", "facts/population.jsonl")
"""What `load` reads."""

STAFF = "staff.jsonl"
"""What `staff` reads."""


def load(directory: Path) -> Population:
    """Read a data directory; PopulationError names the wrong line, DataFileError a file that cannot be read."""
    regions = dict(_homes(directory))
    people = []
    for line, (name, seed) in enumerate(_seeds(directory, _KEYS), start=1):
        if name not in regions:
            raise PopulationError(f"{directory / _KEYS}:{line}: not a demo key of someone with a home region: {name}")
        people.append(Person(name, seed, regions[name]))
    queries = [query for query in files.read(directory, _QUERIES).splitlines() if query]
    return Population(people, queries)


def staff(directory: Path, offices: Mapping[str, str]) -> list[Person]:
    """Return those of the staff who have an office, in its region; PopulationError when one has no demo key."""
    known = dict(_seeds(directory, STAFF))
    missing = offices.keys() - known.keys()
    if missing:
        raise PopulationError(f"{directory / STAFF}: no demo key of {min(missing)}; make the corpus again")
    return [Person(name, known[name], region) for name, region in offices.items()]


def friends(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each user and those whom the facts of a data directory call the user's friends."""
    path = directory / _FACTS
    for line, record in _records(directory, _FACTS):
        conduit = str(record.get("conduit", ""))
        if record.get("says") == "friend" and conduit.startswith("friends/"):
            try:
                yield conduit.removeprefix("friends/"), [name for (name,) in record["tuples"]]
            except (KeyError, TypeError, ValueError) as error:
                raise PopulationError(f"{path}:{line}: expected friend(user): {error}") from error


def _seeds(directory: Path, file: str) -> Iterator[tuple[str, bytes]]:
    for line, record in _records(directory, file):
        try:
            yield str(record["user"]), bytes.fromhex(record["seed"])
        except (KeyError, TypeError, ValueError) as error:
            raise PopulationError(f"{directory / file}:{line}: not a demo key: {error}") from error


def _homes(directory: Path) -> Iterator[tuple[str, str]]:
    path = directory / _FACTS
    for line, record in _records(directory, _FACTS):
        if record.get("says") != "home":
            continue
        for entry in record.get("tuples", []):
            try:
                name, region = entry
            except (TypeError, ValueError) as error:
                raise PopulationError(f"{path}:{line}: expected home(user, region), found {entry!r}") from error
            yield name, region


def _records(directory: Path, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    path = directory / name
    for number, text in enumerate(files.read(directory, name).splitlines(), start=1):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PopulationError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise PopulationError(f"{path}:{number}: expected a JSON object, found {text[:40]!r}")
        yield number, record
