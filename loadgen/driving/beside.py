# SPDX-License-Identifier: BSD-2-Clause
"""What is done beside searches in a slice of load: parts of an order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from loadgen.datasets.population import Person

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 3
"""How many topics a user has at most."""


@dataclass(frozen=True)
class Document:
    """A document as the support asks for it: the number and the name of its conduit, and the title that it has."""

    number: int
    name: str
    title: str


@dataclass(frozen=True)
class Desk:
    """What the support has to do: each of its employees reads each document once."""

    host: str
    """The URL of its front end."""
    service: str
    employees: tuple[Person, ...]
    documents: tuple[Document, ...]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Self:
        """Read a desk from plain data, in which seeds are in hexadecimal."""
        employees = [Person(one["name"], bytes.fromhex(one["seed"]), one["region"]) for one in found["employees"]]
        documents = [Document(**one) for one in found["documents"]]
        return cls(found["host"], found["service"], tuple(employees), tuple(documents))

    @property
    def accesses(self) -> list[tuple[Person, Document]]:
        """Who reads what."""
        return list(itertools.product(self.employees, self.documents))


@dataclass(frozen=True)
class Interests:
    """Whose interests are looked at, and what advertisements are about."""

    host: str
    """The URL of the front end that makes topics."""
    service: str
    visits: int
    """How many users have topics made, one after the other."""
    queries: tuple[str, ...]
    """What they search for."""
    advertisements: Mapping[str, str]
    """The topic of each advertisement, by its text."""

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Self:
        """Read it from plain data."""
        return cls(**{**found, "queries": tuple(found["queries"])})
