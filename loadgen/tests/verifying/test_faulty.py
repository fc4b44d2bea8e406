# SPDX-License-Identifier: BSD-2-Clause
"""Front ends that are broken on purpose: with the real ones, and what their checks take for a failure."""

from __future__ import annotations

import os

import pytest

from loadgen.datasets import crowd, population
from loadgen.driving.beside import Document
from loadgen.driving.protocol import search_once
from loadgen.measuring.place import IMAGE, MANIFESTS
from loadgen.stacks import desk, interests, launcher, light, manifests
from loadgen.stacks.member import Member
from loadgen.stacks.ports import free_port
from loadgen.tests.harness import ROOT
from loadgen.tests.light_stack import launched
from loadgen.verifying import faulty
from loadgen.verifying.checks import EnforcementError

DOCUMENT = Document(17, "/corpus/private/alice/1.txt", "diary")


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_no_document_without_its_entry_and_no_query_as_a_topic() -> None:
    told: list[str] = []
    with launched() as (stacks, place):
        people = population.load(place.data)
        alice = people.people[0]
        stack = stacks.launch(faulty.BROKEN_TOPICS, ("127.0.0.1", free_port()))
        stack.analyze()
        stack.serve()
        stack.serve_beside(interests.TASK)
        search_once(stack.front_end, alice, crowd.QUERY, 1)
        assert "write your topics" in faulty.topics(stack.beside[interests.TASK], alice)
        bundle = light.derive(manifests.read(ROOT / MANIFESTS), "syse")
        member = Member("main-0", "syse", ROOT / IMAGE, place.data, place.data, place.data)
        subject = faulty.Subject(member, bundle, people, stack.front_end)
        found = faulty.accesses(stacks, subject, told.append)
        assert {fault: outcome["entries"] for fault, outcome in found["outcomes"].items()} == {
            "none": 1,
            "skip-entry": 0,
            "forge-entry": 0,
            "date-ahead": 0,
        }
        assert len(told) == 4
        assert list(desk.entries(place.data, desk.log(bundle, "syse"))) == [("erin", found["read"])]
        assert "erin reads another one" in faulty.lines(found)[1]


@pytest.mark.parametrize(
    ("fault", "reason", "entries", "says"),
    [
        ("none", "", 1, ""),
        ("none", "no", 1, "did not read it after its entry"),
        ("none", "", 0, "did not read it after its entry"),
        ("skip-entry", "no", 0, ""),
        ("skip-entry", "", 0, "the support read it without an entry in the log"),
        ("forge-entry", "", 1, "the support read it after an entry in a colleague's name"),
        ("date-ahead", "no", 1, "fault date-ahead left an entry in the log"),
    ],
)
def test_a_fault_that_works_is_a_failure(fault: str, reason: str, entries: int, says: str) -> None:
    if not says:
        faulty.judge(fault, reason, entries, DOCUMENT)
        return
    with pytest.raises(EnforcementError, match=says):
        faulty.judge(fault, reason, entries, DOCUMENT)


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_topics_that_are_made_in_spite_of_the_fault_are_a_failure() -> None:
    with launched() as (stacks, place):
        alice = population.load(place.data).people[0]
        stack = stacks.launch(launcher.CONFINED, ("127.0.0.1", free_port()))
        stack.analyze()
        stack.serve()
        search_once(stack.front_end, alice, crowd.QUERY, 1)
        with pytest.raises(EnforcementError, match="became a topic; beside it there are: weather"):
            faulty.topics(stack.serve_beside(interests.TASK), alice)
