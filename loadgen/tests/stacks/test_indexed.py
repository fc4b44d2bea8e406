# SPDX-License-Identifier: BSD-2-Clause
"""The whole of Sys-E, with Lucene: documents that come, change and go while it runs are found, or not, at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.datasets import arrivals, corpus, population
from loadgen.datasets.sizes import Dataset
from loadgen.driving.protocol import search_once
from loadgen.measuring.place import IMAGE
from loadgen.stacks import indexed, manifests
from loadgen.stacks.supervisor import Supervisor
from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.datasets.population import Person
    from loadgen.stacks.stack import Stack

SMALL = Dataset("small", "generated", documents=40, users=40, friends=3)


def put(data: Path, place: str, owner: str, title: str) -> None:
    visibility = place.split("/")[1]
    arrivals.document(place, owner, visibility, title, "A blue moon.").put(data)


def found(stack: Stack, who: Person, title: str) -> list[dict[str, Any]]:
    results = search_once(stack.front_end, who, title, 10)["results"]
    return [result for result in results if result["title"] == title]


def opens(stack: Stack) -> int:
    return stack.interceptions().get("open", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_documents_come_change_and_go(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:2]:
        above.chmod(0o755)  # tasks run as other users
    site = indexed.site(ROOT / IMAGE, tmp_path)
    generator = corpus.Generator(ROOT / IMAGE / "syse" / "syse.jar", corpus.find_java()[0])
    corpus.make(site.data, SMALL, 1, generator, corpus.generate)
    site.logs.mkdir()
    people = population.load(site.data).people
    with (
        Supervisor() as supervisor,
        indexed.serving(site, manifests.read(ROOT / "crds" / "examples" / "syse"), supervisor) as stack,
    ):
        private = site.data / "corpus" / "private"
        owner = next(person for person in people if (private / person.name).is_dir())
        newcomer = next(person for person in people if not (private / person.name).is_dir())
        other = next(person for person in people if person not in {owner, newcomer})
        mine = f"corpus/private/{owner.name}/new.txt"

        put(site.data, mine, owner.name, "zebra")
        until(lambda: found(stack, owner, "zebra"), "its owner finds a document of a known class")
        assert found(stack, other, "zebra") == []
        asked = opens(stack)
        first = found(stack, owner, "zebra")
        assert len(first) == 1
        assert opens(stack) == asked, "it is native at once"

        put(site.data, f"corpus/private/{newcomer.name}/new.txt", newcomer.name, "okapi")
        until(lambda: found(stack, newcomer, "okapi"), "its owner finds a document of a new class")
        assert found(stack, other, "okapi") == []
        asked = opens(stack)
        until(lambda: _is_native(stack, newcomer, "okapi"), "it is native after the background analysis")

        put(site.data, mine, owner.name, "quagga")
        until(lambda: found(stack, owner, "quagga"), "its owner finds the new content")
        assert found(stack, owner, "quagga")[0]["id"] != first[0]["id"], "it is another conduit"
        assert found(stack, owner, "zebra") == []

        (site.data / mine).unlink()
        until(lambda: not found(stack, owner, "quagga"), "nobody finds what was removed")
        until(
            lambda: search_once(stack.front_end, owner, "quagga", 10).get("withheld", 0) == 0, "the index has followed"
        )


def _is_native(stack: Stack, who: Person, title: str) -> bool:
    """Whether a new session opens a document that it finds without asking the monitor."""
    before = opens(stack)
    return bool(found(stack, who, title)) and opens(stack) == before
