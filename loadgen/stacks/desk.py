# SPDX-License-Identifier: BSD-2-Clause
"""What Sys-E's support works with: its employees, documents of users, and the log of accesses."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from loadgen.datasets import documents, files, population
from loadgen.driving.beside import Document
from loadgen.driving.protocol import search_once
from loadgen.errors import PublicError
from loadgen.stacks import manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from loadgen.datasets.population import Person
    from loadgen.driving.protocol import FrontEnd

TASK = "support"
"""The task that shows employees the documents of users."""

_LOG = "access-log"
_ENTRY = re.compile(r'access\(("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*"), [-0-9T:.Z]+\)')
_RESULTS = 64


class DeskError(PublicError):
    """The support cannot work, or its log is not in its form; the text says why."""


def employees(bundle: Sequence[dict[str, Any]], data: Path) -> list[Person]:
    """Return the employees of the support, who have an office by the facts of the manifests."""
    offices = dict(manifests.facts(bundle, "employees", "office"))
    return population.staff(data, offices)


def log(bundle: Sequence[dict[str, Any]], pipeline: str) -> str:
    """Return the name of the log of accesses; DeskError when the pipeline has none."""
    for conduit in manifests.find(bundle, pipeline)["spec"]["conduits"]:
        if conduit.get("type") == _LOG:
            return str(conduit["paths"][0]["path"])
    raise DeskError(f"pipeline {pipeline} has no conduit of type {_LOG}")


def entries(data: Path, name: str) -> Counter[tuple[str, str]]:
    """Return how often the log of this name says that somebody has asked for a document: (employee, document)."""
    path = PurePosixPath(name).relative_to("/")
    if not (data / path).exists():
        return Counter()
    found: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(files.read(data, str(path)).splitlines(), start=1):
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise DeskError(f"{name}, line {number}: it is no entry access(EMPLOYEE, DOCUMENT, TIME)")
        found[json.loads(entry[1]), json.loads(entry[2])] += 1
    return found


def find(data: Path, people: Iterable[Person], service: FrontEnd) -> Iterator[Document]:
    """Yield private documents of users, at most one of each, with the numbers by which their owners find them."""
    for person in people:
        document = _of(data, person, service)
        if document is not None:
            yield document


def _of(data: Path, owner: Person, service: FrontEnd) -> Document | None:
    """Return the first private document of a user that the search service shows to its owner."""
    titled = list(documents.titled(data, f"corpus/private/{owner.name}"))
    often = Counter(title for _, title in titled)
    for path, title in titled:
        if often[title] > 1:
            continue  # which one is found is not known
        for result in search_once(service, owner, title, _RESULTS)["results"]:
            if (result["title"], result["owner"], result["visibility"]) == (title, owner.name, "private"):
                return Document(result["id"], f"/{path.relative_to(data)}", title)
    return None
