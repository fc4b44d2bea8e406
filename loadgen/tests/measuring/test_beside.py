# SPDX-License-Identifier: BSD-2-Clause
"""What happens beside searches: with the real front ends and a real monitor, and what is believed of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen import plan
from loadgen.datasets import population
from loadgen.datasets.population import Person
from loadgen.driving.beside import Desk, Document, Interests
from loadgen.driving.metrics import ANY, CHOSEN, FAILED, OK, REFUSED, Series
from loadgen.driving.orders import Driver
from loadgen.measuring import beside
from loadgen.measuring.measurement import MeasurementError
from loadgen.measuring.place import IMAGE, MANIFESTS
from loadgen.stacks import desk, interests, light, manifests
from loadgen.stacks.member import Member
from loadgen.stacks.monitor import Monitor, Server
from loadgen.stacks.stack import Stack
from loadgen.tests.harness import ROOT
from loadgen.tests.light_stack import USERS, running

LOG = "/support/accesses"
ERIN, FRANK = Person("erin", b"", "us"), Person("frank", b"", "de")
DOCUMENTS = tuple(Document(number, f"/corpus/private/alice/{number}.txt", "a title") for number in range(2))
DESK = Desk("http://127.0.0.1:1", "127.0.0.1:1", (ERIN, FRANK), DOCUMENTS)
ALL = Counter((who.name, what.name) for who in (ERIN, FRANK) for what in DOCUMENTS)


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_the_support_reads_what_is_logged_and_advertisements_are_about_topics() -> None:
    bundle = light.derive(manifests.read(ROOT / MANIFESTS), "syse")
    with running(beside=(desk.TASK, interests.TASK)) as (stack, data):
        member = Member("main-0", "syse", ROOT / IMAGE, data, data, data)
        wanted = replace(plan.PLANS["smoke"], concurrent_users=4, slice_seconds=1.0)
        command = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process,
            Driver(process.stdin, process.stdout) as load,
        ):
            found = beside.run(load, stack, beside.Site(bundle, member, population.load(data)), wanted)
        assert found["support"].pop("milliseconds")["p50"] > 0
        both = 2 * USERS  # each employee reads a document of each user
        assert found == {
            "support": {"accesses": both, "read": both, "logged": both, "refused": 0},
            "interests": {"users": beside.VISITS, "advertisements": beside.VISITS},
        }
        assert set(desk.entries(data, LOG).values()) == {1}


@pytest.mark.parametrize(
    ("read", "logged", "says"),
    [
        ({OK: 4}, ALL, ""),
        ({OK: 4}, ALL - Counter([("erin", DOCUMENTS[0].name)]), "its log has 3 new entries, of which 3 are about them"),
        ({OK: 4}, ALL + Counter([("erin", DOCUMENTS[0].name)]), "its log has 5 new entries, of which 4 are about them"),
        ({OK: 4}, Counter({("mallory", name): 1 for name in "abcd"}), "4 new entries, of which 0 are about them"),
        ({OK: 3, REFUSED: 1}, ALL, "of 4 documents 3 were read, 1 refused, 0 failed"),
        ({OK: 3, FAILED: 1}, ALL, "of 4 documents 3 were read, 0 refused, 1 failed"),
    ],
)
def test_a_log_that_does_not_say_what_was_read_ends_a_run(
    read: dict[str, int], logged: Counter[tuple[str, str]], says: str
) -> None:
    counted = Series(accesses=Counter(read))
    if not says:
        assert beside.support(DESK, counted, logged, [])["logged"] == 4
        return
    with pytest.raises(MeasurementError, match=says) as caught:
        beside.support(DESK, counted, logged, ["erin reads alice's diary: refused"])
    assert "diary" in str(caught.value)
    assert "diary" not in caught.value.public


@pytest.mark.parametrize(
    ("made", "shown", "says"),
    [
        ({OK: 2}, {CHOSEN: 1}, ""),
        ({OK: 2}, {}, "0 are about their topics"),
        ({OK: 2}, {CHOSEN: 1, ANY: 1}, "1 are not"),
        ({OK: 1, REFUSED: 1}, {CHOSEN: 1}, "for 1 of 2 users, 1 were refused"),
    ],
)
def test_topics_that_advertisements_ignore_end_a_run(made: dict[str, int], shown: dict[str, int], says: str) -> None:
    wanted = Interests("http://127.0.0.1:1", "127.0.0.1:1", 2, ("moon",), {"Umbrellas": "weather"})
    counted = Series(topics=Counter(made), advertisements=Counter(shown))
    if not says:
        assert beside.topics(wanted, counted, []) == {"users": 2, "advertisements": 1}
        return
    with pytest.raises(MeasurementError, match=says):
        beside.topics(wanted, counted, [])


def test_a_measurement_says_why_nothing_happened_beside_searches() -> None:
    nobody = Path("/nonexistent")
    near = Member("main-0", "syse", nobody, nobody, nobody, nobody)
    far = replace(near, twins={"baseline": Server("a", nobody, nobody, nobody)})
    stack = Stack(Monitor(nobody, nobody), "syse", ("127.0.0.1", 1), "shai")
    wanted = plan.PLANS["smoke"]
    assert not beside.tasks(stack), "the pipeline has no support"
    assert beside.doubts(stack, {}) == []
    stack.beside = {desk.TASK: stack.front_end}
    assert "no user finds a private document" in beside.doubts(stack, {})[0]
    assert beside.doubts(stack, {"support": {}}) == []
    assert beside.tasks(stack) == {desk.TASK}
    assert beside.missing(wanted, near) == ""
    assert "on another host" in beside.missing(wanted, far)
    assert "mode shai was not measured" in beside.missing(replace(wanted, modes=("baseline", "dynamic")), near)


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    assert desk.entries(tmp_path, LOG) == Counter()
    path = tmp_path / "support" / "accesses"
    path.parent.mkdir()
    path.write_text('access("erin", "/corpus/private/a\\"b/1.txt", 2026-01-01T00:00:00Z)\n' * 2)
    assert desk.entries(tmp_path, LOG) == Counter({("erin", '/corpus/private/a"b/1.txt'): 2})
    path.write_text("access(erin)\n")
    with pytest.raises(desk.DeskError, match="line 1: it is no entry"):
        desk.entries(tmp_path, LOG)
