# SPDX-License-Identifier: BSD-2-Clause
"""The client's protocol, with a fake Sys-E: real sockets, real signatures, no documents."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from loadgen.datasets.population import Person, Population
from loadgen.driving import protocol
from loadgen.driving.protocol import FrontEnd, ProtocolError, Session
from loadgen.tests.fake_syse import FakeSysE  # noqa: TC001 - pytest reads it

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session(server: FakeSysE) -> Iterator[Session]:
    opened = Session(server.front_end, "127.0.1.17")
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


@pytest.mark.parametrize(
    ("service", "pipeline", "allowed"),
    [("", "syse", True), ("", "other", False), ("evil.example:80", "syse", False)],
)
def test_a_login_signs_the_service_and_the_pipeline_that_the_client_meant(
    server: FakeSysE, people: Population, service: str, pipeline: str, allowed: bool  # noqa: FBT001
) -> None:  # fmt: skip
    opened = Session(FrontEnd.dialled(server.front_end.address, pipeline, service))
    try:
        with contextlib.nullcontext() if allowed else pytest.raises(ProtocolError, match="got 403"):
            opened.login(people["alice"])
    finally:
        opened.close()


def test_the_service_is_the_address_unless_the_manifest_says_otherwise() -> None:
    assert FrontEnd.dialled(("127.0.0.1", 80), "syse").service == "127.0.0.1:80"
    assert FrontEnd.dialled(("::1", 80), "syse").service == "[::1]:80"
    assert FrontEnd.dialled(("127.0.0.1", 80), "syse", "example.org:443").service == "example.org:443"


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


QUERY = b'{"query":"aback","results":[],"withheld":%s}'


@pytest.mark.parametrize(
    "withheld", [b'"x"', b"-1", b"1e999", b"NaN", b"1.5", b"true", b"null", b"[]", b"1" * 4000, b"1" * 5000]
)
def test_a_wrong_number_of_withheld_documents_is_an_error(
    session: Session, server: FakeSysE, people: Population, withheld: bytes
) -> None:
    session.login(people["bob"])
    server.body = QUERY % withheld
    with pytest.raises(ProtocolError, match=r"withheld|expected JSON"):
        session.search("aback")


def test_deep_json_is_an_error(session: Session, server: FakeSysE, people: Population) -> None:
    session.login(people["bob"])
    server.body = b"[" * 200_000
    with pytest.raises(ProtocolError, match="expected JSON"):
        session.search("aback")


@pytest.mark.parametrize("nonce", ["\ud800", "", "0" * 1000, "00\n", "xyz"])
def test_a_wrong_nonce_is_an_error(session: Session, server: FakeSysE, people: Population, nonce: str) -> None:
    server.body = json.dumps({"nonce": nonce}).encode()
    with pytest.raises(ProtocolError, match="expected a nonce"):
        session.login(people["bob"])


def test_a_long_answer_is_not_kept(session: Session, server: FakeSysE, people: Population) -> None:
    session.login(people["bob"])
    server.body = b" " * (protocol.BODY_BYTES + 1)
    with pytest.raises(ProtocolError, match="expected up to 4194304 bytes"):
        session.search("aback")


def test_answers_that_do_not_end_are_kept_in_part_only_however_many_there_are(
    server: FakeSysE, people: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HELD_BYTES", 3000)
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"
    with contextlib.closing(Session(server.front_end)) as session, protocol.Answer() as other:
        other.feed(begun + b" " * 2990)
        with pytest.raises(ProtocolError, match="expected answers that end, got 3000 bytes of others"):
            session.login(people["bob"])
    with contextlib.closing(Session(server.front_end)) as session:
        session.login(people["bob"])
        session.search("aback")
    assert protocol.Answer.held == 0, "nothing is counted twice or for ever"


def test_a_whole_answer_has_its_time(
    session: Session, server: FakeSysE, people: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.login(people["bob"])
    server.misbehave = "trickle"
    monkeypatch.setattr(protocol, "TIMEOUT_SECONDS", 0.5)
    with pytest.raises(ProtocolError, match="a whole answer within"):
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
