# SPDX-License-Identifier: BSD-2-Clause
"""The client's protocol, with a fake Sys-E: real sockets, real signatures, no documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadgen.datasets.population import Person, Population
from loadgen.driving.protocol import ProtocolError, Session
from loadgen.tests.fake_syse import FakeSysE  # noqa: TC001 - pytest reads it

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session(server: FakeSysE) -> Iterator[Session]:
    opened = Session(server.address, "127.0.1.17")
    yield opened
    opened.close()


def test_logs_in_and_searches(session: Session, server: FakeSysE, people: Population) -> None:
    assert session.login(people["alice"])["principal"] == "alice"
    answer = session.search("tïtle & more?")
    assert answer["results"][0]["title"] == "tïtle & more?"
    assert server.connections == ["127.0.1.17"]


def test_wrong_key_is_refused(session: Session) -> None:
    with pytest.raises(ProtocolError, match="expected status 200, got 403"):
        session.login(Person("alice", bytes(32), "us"))


def test_search_needs_a_login(session: Session) -> None:
    with pytest.raises(ProtocolError, match="got 401"):
        session.search("aback")


@pytest.mark.parametrize(
    ("misbehave", "message"),
    [
        ("close", "the connection was closed"),
        ("status", "got 500"),
        ("html", "expected JSON"),
        ("echo", "got an answer to 'something else'"),
        ("shape", "a result lacks"),
    ],
)
def test_bad_answers_are_errors(
    session: Session, server: FakeSysE, people: Population, misbehave: str, message: str
) -> None:
    session.login(people["bob"])
    server.misbehave = misbehave
    with pytest.raises(ProtocolError, match=message):
        session.search("aback")


def test_a_lost_connection_stays_lost(session: Session, server: FakeSysE, people: Population) -> None:
    session.login(people["bob"])
    server.misbehave = "close"
    with pytest.raises(ProtocolError):
        session.search("aback")
    server.misbehave = ""
    with pytest.raises((ProtocolError, OSError)):
        session.search("aback")
    assert len(server.connections) == 1
