# SPDX-License-Identifier: BSD-2-Clause
"""The real syse-engine over named pipes, which carry queries and, record by record, answers."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENGINE = Path(__file__).resolve().parents[3] / "build" / "syse" / "syse-engine"
SLOTS = 3
SECONDS = 60


class Slot:
    """The front end's side of one slot."""

    def __init__(self, folder: Path, number: int) -> None:
        self.queries = os.open(folder / "queries" / str(number), os.O_WRONLY)
        self.results = os.open(folder / "results" / str(number), os.O_RDONLY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.queries)
        os.close(self.results)

    def send(self, line: bytes) -> None:
        os.write(self.queries, line + b"\n")

    def ask(self, query: int, user: str, *friends: str, **fields: Any) -> None:
        asked = {"query": query, "user": user, "friends": friends, "text": "Cross", "count": 10, "checked": False}
        self.send(json.dumps({**asked, **fields}).encode())

    def answer(self) -> tuple[int, ...]:
        return transfer(os.read(self.results, 4096))


def transfer(record: bytes) -> tuple[int, ...]:
    """Return a record's query, what is reserved, and its conduits in ascending order."""
    query, reserved, *conduits = struct.unpack(f"<{len(record) // 4}I", record)
    return query, reserved, *sorted(conduits)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = {
        "7/0/1": ("alice", "private"), "7/0/2": ("alice", "private"),
        "8/0/3": ("-", "public"), "9/4/4294967295": ("bob", "friends"),
    }  # fmt: skip
    for name, (owner, visibility) in documents.items():
        path = tmp_path / "view" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"title: cross {name}\nowner: {owner}\nvisibility: {visibility}\n\nA cross.\n")
    (tmp_path / "view" / "index.html").write_text("no number")
    (tmp_path / "view" / "8" / "0" / "5").write_text("no header")
    os.mkfifo(tmp_path / "view" / "8" / "0" / "6")
    (tmp_path / "view" / "8" / "0" / "9").symlink_to("3")
    for kind in ("queries", "results", "checked"):
        (tmp_path / kind).mkdir()
        for number in range(SLOTS):
            os.mkfifo(tmp_path / kind / str(number))
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def starter(*options: str) -> subprocess.Popen[str]:
        command: list[str | Path] = [
            ENGINE, "--documents", folder / "view", "--queries", folder / "queries", "--results", folder / "results",
            "--checked-results", folder / "checked", *options,
        ]  # fmt: skip
        engine = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(engine)
        assert engine.stdout is not None
        assert engine.stdout.readline() == "ready\n"
        return engine

    yield starter
    for engine in started:
        engine.kill()
        engine.communicate()


def test_each_user_is_answered_on_their_slot_and_the_engine_ends_with_its_pipes(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    engine = start("--slots", str(SLOTS))
    with Slot(folder, 0) as alice, Slot(folder, 1) as bob, Slot(folder, 2) as idle:
        alice.ask(17, "alice", "bob", "nobody")
        bob.ask(2**32 - 1, "bob")
        assert alice.answer() == (17, 0, 1, 2, 3, 2**32 - 1)
        assert bob.answer() == (2**32 - 1, 0, 3, 2**32 - 1)
        idle.send(b"one that nobody can read")
        assert idle.answer() == (0, 0)
        idle.send(b'{"query":5,"text":7}')
        assert idle.answer() == (5, 0)
        idle.send(b"x" * 5000)
        assert idle.answer() == (0, 0)
        idle.ask(6, "'; DROP \u202e\U0001f600", "\n", text="</script>" * 100)
        assert idle.answer() == (6, 0, 3)
    _, log = engine.communicate(timeout=SECONDS)
    assert engine.returncode == 0
    assert "all pipes have ended: 6 queries answered" in log
    assert "document 5 is left out" in log
    assert "DROP" not in log, "others read the log"


def test_checked_queries_are_answered_on_the_twin_channel(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    start("--slots", "1")
    with Slot(folder, 0) as slot:
        slot.ask(1, "carol", checked=True)
        checked = os.open(folder / "checked" / "0", os.O_RDONLY)
        assert transfer(os.read(checked, 4096)) == (1, 0, 3)
        os.close(checked)
        slot.ask(2, "carol")
        assert slot.answer() == (2, 0, 3)


def test_results_differ_from_query_to_query(folder: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    start("--slots", "1", "--busy-cycles", "1000")
    with Slot(folder, 0) as slot:
        found = set()
        for query in range(100):
            slot.ask(query, "alice", count=1)
            _, _, conduit = slot.answer()
            found.add(conduit)
    assert found == {1, 2, 3}


def test_a_broken_engine_sends_other_peoples_documents(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    start("--slots", "1", "--fault", "ignore-attributes")
    with Slot(folder, 0) as slot:
        slot.ask(1, "carol")
        assert slot.answer() == (1, 0, 1, 2, 3, 2**32 - 1)


def test_a_broken_engine_writes_text(folder: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    start("--slots", "1", "--fault", "text-instead-of-ids")
    with Slot(folder, 0) as slot:
        slot.ask(1, "carol")
        assert os.read(slot.results, 4096)[8:].startswith(b"title: cross ")


def test_a_slot_that_cannot_be_served_is_named_and_the_others_are_served(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    (folder / "results" / "0").unlink()
    engine = start("--slots", "2")
    pipe = os.open(folder / "queries" / "0", os.O_WRONLY)
    with Slot(folder, 1) as slot:
        slot.ask(1, "carol")
        assert slot.answer() == (1, 0, 3)
    os.close(pipe)
    _, log = engine.communicate(timeout=SECONDS)
    assert engine.returncode == 1
    assert "slot 0 is no longer served: No such file or directory" in log


def test_an_engine_that_is_told_to_end_ends(folder: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    engine = start("--slots", str(SLOTS))
    with Slot(folder, 0):
        engine.send_signal(signal.SIGTERM)
        engine.communicate(timeout=SECONDS)
    assert engine.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--documents, --queries and --results are needed"),
        (["--documents", "d", "--queries", "q", "--results", "r"], "d: No such file or directory"),
        (["--documents", "empty", "--queries", "q", "--results", "r"], "empty holds no documents: load the corpus"),
        (["--slots", "33"], "--slots 33: a number from 1 to 32 is expected"),
        (["--busy-cycles", "-1"], "--busy-cycles -1: a number from 0"),
        (["--fault", "typo"], "this engine has no fault typo"),
        (["--unknown"], "unrecognized option"),
        (["more"], "unexpected argument more"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    ended = subprocess.run([ENGINE, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 1
    assert message in ended.stderr


def test_help_is_an_answer() -> None:
    ended = subprocess.run([ENGINE, "--help"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("usage: syse-engine")
    assert ended.stderr == ""
