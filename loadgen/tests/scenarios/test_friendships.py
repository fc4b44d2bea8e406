# SPDX-License-Identifier: BSD-2-Clause
"""The check that no former friend is shown anything: alone, and on the real stack with and without enforcement."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.datasets import population
from loadgen.scenarios.friendships import Friendship, Friendships
from loadgen.stacks import launcher
from loadgen.stacks.monitor import Monitor
from loadgen.tests.harness import ROOT
from loadgen.tests.light_stack import running

if TYPE_CHECKING:
    from loadgen.stacks.stack import Stack
    from loadgen.tests.fake_syse import FakeSysE

SHOWN = {"id": 7, "title": "a secret", "owner": "alice", "visibility": "friends"}

OTHER = {**SHOWN, "id": 8, "title": "another one"}


def friendship(**state: Any) -> Friendship:
    bob = population.Person("bob", bytes(32), "us")
    return replace(Friendship("alice", bob, ["a secret"]), **state)


@pytest.mark.parametrize(
    ("ended", "since", "result", "found"),
    [
        (None, 10.0, SHOWN, 0),  # they are friends
        (5.0, 4.9, SHOWN, 0),  # asked before the answer: either is right
        (5.0, 5.0, SHOWN, 0),
        (5.0, 5.1, SHOWN, 1),
        (5.0, 5.1, {**OTHER, "visibility": "public"}, 0),
        (5.0, 5.1, {**OTHER, "visibility": "circles"}, 0),  # friends of friends may read it
        (5.0, 5.1, {**OTHER, "owner": "carol"}, 0),
        # A service that says something else of the owner's document.
        (5.0, 5.1, {**SHOWN, "owner": "-"}, 1),
        (5.0, 5.1, {**SHOWN, "visibility": "Friends"}, 1),
        (5.0, 5.1, {**SHOWN, "owner": "-", "id": 9}, 1),
    ],
)
def test_what_is_a_violation(ended: float | None, since: float, result: dict[str, Any], found: int) -> None:
    violations = friendship(ended=ended).violations([result], since)
    assert len(violations) == found
    says = f"bob was shown document {result['id']} “a secret” of alice"
    assert all(says in str(violation) for violation in violations)


def test_a_search_tells_only_if_the_friend_could_have_been_shown_something() -> None:
    pair = friendship()
    pair.violations([{**SHOWN, "owner": "carol"}], 1.0)
    assert not pair.seen
    pair.violations([SHOWN], 1.0)
    assert pair.seen
    assert not pair.would_tell(2.0)
    pair.ended = 5.0
    assert [pair.would_tell(since) for since in (4.0, 5.0, 5.1)] == [False, False, True]


def test_a_document_keeps_its_id_whatever_else_is_said_of_it() -> None:
    pair = friendship()
    pair.violations([SHOWN], 1.0)
    pair.ended = 5.0
    assert len(pair.violations([{**OTHER, "id": SHOWN["id"], "owner": "-"}], 5.1)) == 1


def test_what_has_the_title_of_another_document_may_be_that(tmp_path: Path) -> None:
    for name in ("corpus/friends/alice/7.txt", "corpus/public/8.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("title: a secret\n\n")
    public = {**SHOWN, "id": 8, "owner": "-", "visibility": "public"}
    assert friendship(ended=5.0, data=tmp_path).violations([public], 5.1) == []
    (tmp_path / "corpus" / "public" / "8.txt").unlink()
    assert len(friendship(ended=5.0, data=tmp_path).violations([public], 5.1)) == 1


def test_friendships_are_picked_in_turn() -> None:
    pairs = [friendship(owner=name) for name in ("a", "b", "c")]
    friendships = Friendships(pairs, True, Monitor(Path("shai"), Path("/nowhere")))  # noqa: FBT003 - immediate
    picked = [friendships.pick().owner for _ in range(9)]
    assert sorted(picked) == sorted("abc" * 3)


def unfriending(stack: Stack, data: Path, results: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "loadgen", "scenario", "unfriending", "--host", stack.front_end.url]
    words += ["--socket", str(stack.monitor.socket), "--data", str(data), "--results", str(results)]
    words += ["--users", "6", "--run-time", "8s", *more]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")


@needs_root
@pytest.mark.parametrize(("revocation", "workers"), [("lazy", 1), ("immediate", 2)])
def test_no_former_friend_is_shown_anything(revocation: str, workers: int, tmp_path: Path) -> None:
    with running(revocation=revocation) as (stack, data):
        done = unfriending(stack, data, tmp_path, "--workers", str(workers))
        facts = dict(population.friends(data))
        owner, friends = next(iter(facts.items()))
        explained = stack.monitor.call(
            "explain", "--conduit", f"/corpus/friends/{owner}/1.txt", "--principal", friends[0]
        )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "result.json").read_text())["parts"][-1]
    assert found["violations"] == found["failures"] == 0
    assert found["checked"] > 0
    assert (found["revoked"] > 0) == (revocation == "immediate")
    assert explained["allowed"], "the friendship was not put back"


@needs_root
def test_without_enforcement_it_is_a_violation(tmp_path: Path) -> None:
    with running(launcher.TWINS[0]) as (stack, data):
        done = unfriending(stack, data, tmp_path)
    assert done.returncode == 3, done.stderr
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["parts"][-1]["violations"] > 0
    assert any(
        re.search(r"user\d+ was shown document \d+ “friends/user\d+/1\.txt” of ", text) for text in found["errors"]
    )
    assert "exceeded  violations>0: " in done.stdout


@pytest.mark.parametrize(
    ("socket", "says"),
    [
        ([], "locust: facts are changed at the monitor's socket: name it with --socket PATH"),
        (["--socket", "/nowhere"], "locust: no monitor answers at /nowhere: "),
    ],
)
def test_without_a_monitor_it_says_what_is_missing(
    server: FakeSysE, data: Path, tmp_path: Path, socket: list[str], says: str
) -> None:
    words = [sys.executable, "-m", "loadgen", "scenario", "unfriending", "--data", str(data), *socket]
    words += ["--host", f"http://127.0.0.1:{server.server_port}", "--results", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert done.stderr.startswith(says)
    assert len(done.stderr.splitlines()) == 1
