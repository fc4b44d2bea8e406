# SPDX-License-Identifier: BSD-2-Clause
"""Checks that policies hold: a search by several users, and a leak attempt that is stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.datasets import documents
from loadgen.driving.protocol import FrontEnd, search_once
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadgen.datasets.population import Person

RESULTS = 50
"""The number of requested results; large, so that a leaked document is not cut off."""

_RECORD_FIELDS = ("operation", "conduit", "instance", "principal", "policy", "clause", "reason")


class EnforcementError(LoadgenError):
    """A check failed: something leaked, or the check itself could not have failed."""


@dataclass(frozen=True)
class Document:
    """A document of the corpus; ``conduit`` is its path in the pipeline."""

    conduit: str
    title: str


def private_document(data: Path, owner: str) -> Document:
    """Find a private document of ``owner`` whose title is a query."""
    folder = data / "corpus" / "private" / owner
    for path, title in documents.titled(data, str(folder.relative_to(data))):
        return Document(f"/{path.relative_to(data)}", title)
    raise EnforcementError(f"{folder}: no private document with a title; make the corpus again with more documents")


def found(answer: dict[str, Any], owner: str, title: str) -> list[dict[str, Any]]:
    """Return the results that are ``owner``'s private documents with this title."""
    return [
        result
        for result in answer["results"]
        if result["owner"] == owner and result["visibility"] == "private" and result["title"] == title
    ]


def compare(front_end: FrontEnd, alice: Person, bob: Person, document: Document) -> dict[str, Any]:
    """Search for bob's private document as alice and as bob: only bob finds it."""
    answers = {person.name: search_once(front_end, person, document.title, RESULTS) for person in (alice, bob)}
    if found(answers[alice.name], bob.name, document.title):
        raise EnforcementError(f"{document.conduit}: alice was shown bob's private document")
    if not found(answers[bob.name], bob.name, document.title):
        raise EnforcementError(f"{document.conduit}: bob does not find his own document {document.title!r}")
    return {
        "query": document.title,
        "document": document.conduit,
        **{name: [_brief(result) for result in answer["results"]] for name, answer in answers.items()},
    }


def leak_attempt(front_end: FrontEnd, alice: Person, owner: str, document: Document) -> dict[str, Any]:
    """Search for ``owner``'s private document as alice, with an engine that ignores attributes."""
    answer = search_once(front_end, alice, document.title, RESULTS)
    return {
        "leaked": bool(found(answer, owner, document.title)),
        "withheld": answer.get("withheld"),
        "results": len(answer["results"]),
    }


def judge(baseline: dict[str, Any], confined: dict[str, Any], document: Document) -> None:
    """Raise EnforcementError unless the document leaks without enforcement and does not leak with it."""
    if confined["leaked"]:
        raise EnforcementError(f"{document.conduit}: the broken engine leaked it to alice although it was confined")
    if not baseline["leaked"]:
        raise EnforcementError(
            f"{document.conduit}: the broken engine did not leak it in mode baseline either, so this proves nothing"
        )


def await_record(read: Callable[[], list[dict[str, Any]]], document: Document, seconds: float = 5.0) -> dict[str, Any]:
    """Return the audit record of the refusal of ``document``; it may be written a moment later.

    Fields that the monitor leaves out because they are empty are present, as empty text.
    """
    deadline = time.monotonic() + seconds
    while True:
        matching = [record for record in read() if record.get("conduit") == document.conduit and not record["allowed"]]
        if matching:
            return {**dict.fromkeys(_RECORD_FIELDS, ""), **matching[-1]}
        if time.monotonic() > deadline:
            raise EnforcementError(f"{document.conduit}: it was withheld, but no audit record says why")
        time.sleep(0.2)


def _brief(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("title", "owner", "visibility")}
