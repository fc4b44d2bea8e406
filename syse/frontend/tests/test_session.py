# SPDX-License-Identifier: BSD-2-Clause
"""Logging in, searching and logging out, in mode baseline and under a fake monitor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from .harness import AUDIT, BASELINE, DYNAMIC, PIPELINE, FrontEnd, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = [pytest.param(BASELINE, id="baseline"), pytest.param(DYNAMIC, id="dynamic"), pytest.param(AUDIT, id="audit")]


@pytest.fixture(params=MODES)
def any_mode(request: pytest.FixtureRequest, start: Callable[..., FrontEnd]) -> FrontEnd:
    return start(mode=request.param, workers=2 if request.param == BASELINE else 1)


def test_the_owner_of_a_key_gets_in(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        status, session = client.login("alice")
        assert status == 200
        assert session["principal"] == "alice"
        assert session["region"] == any_mode.region
        assert session["instance"] == ("alice" if any_mode.mode == BASELINE else "worker(alice, de)")
        assert client.json("GET", "/session")[1]["principal"] == "alice"


def test_another_ones_signature_is_refused_and_the_right_one_still_accepted(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        status, answer = client.login("alice", signer="bob")
        assert status == 403
        assert "signature" in answer["error"]
        assert "alice" in answer["error"]
        assert client.json("GET", "/search?q=x")[0] == 401
        assert client.login("alice")[0] == 200


def test_a_third_wrong_signature_ends_the_connection(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        assert [client.login("alice", signer="bob")[0] for _ in range(3)] == [403, 403, 403]
        assert client.headers["Connection"] == "close"


@pytest.mark.parametrize(("service", "allowed"), [("evil.example:80", False), ("", True)])
def test_a_login_for_another_service_is_refused(any_mode: FrontEnd, service: str, allowed: bool) -> None:  # noqa: FBT001
    with any_mode.client() as client:
        client.service = service or any_mode.service
        status, answer = client.login("alice")
        assert status == (200 if allowed else 403)
        assert allowed or "signature" in answer["error"]


def test_the_session_says_where_its_users_dial(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        session = client.json("GET", "/session")[1]
        assert (session["service"], session["pipeline"]) == (any_mode.service, PIPELINE)


def test_an_unknown_user_is_named(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        status, answer = client.login("mallory")
        assert status == 403
        assert 'no public key is registered for principal "mallory"' in answer["error"]


def test_a_signature_is_good_for_its_own_connection_only(front_end: FrontEnd) -> None:
    with front_end.client() as first, front_end.client() as second:
        nonces = [client.json("GET", "/session")[1]["nonce"] for client in (first, second)]
        assert nonces[0] != nonces[1]
        assert first.login("alice")[0] == 200
        assert second.json("GET", "/search?q=x")[0] == 401


def test_a_session_keeps_its_user(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        assert client.login("alice")[0] == 200
        status, answer = client.login("bob")
        assert status == 409
        assert "alice" in answer["error"]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", "the body is not"),
        (b"[]", "the body is not"),
        (b'{"principal":1,"signature":"00"}', "the body is not"),
        (b'{"principal":"","signature":"00"}', "empty"),
        (b'{"principal":"' + b"a" * 96 + b'","signature":"00"}', "exceeds 95 bytes"),
        (b'{"principal":"a\\nb","signature":"00"}', "control character"),
        (b'{"principal":"a\\u0000b","signature":"00"}', "the body is not"),
        (b'{"principal":"alice","signature":"00"}', "128 hexadecimal digits"),
        (b'{"principal":"alice","signature":"' + b"g" * 128 + b'"}', "128 hexadecimal digits"),
        (b'{"principal":"\xff","signature":"00"}', "the body is not"),
    ],
)
def test_a_malformed_claim_is_refused_with_the_cause(front_end: FrontEnd, body: bytes, cause: str) -> None:
    with front_end.client() as client:
        status, answer = client.json("POST", "/session", body)
        assert status == 400
        assert cause in answer["error"]


def test_logging_out_ends_the_connection(any_mode: FrontEnd) -> None:
    with any_mode.client() as client:
        client.login("alice")
        assert client.ask("DELETE", "/session")[0] == 204
        assert client.headers["Connection"] == "close"
        assert any_mode.mode == BASELINE or eventually(lambda: any_mode.resets == 1)
    with any_mode.client() as client:
        assert client.json("GET", "/session")[1]["principal"] is None


@pytest.mark.parametrize("mode", [DYNAMIC, AUDIT])
def test_under_a_monitor_a_worker_serves_one_session(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1)
    workers = []
    for user in ("alice", "bob", "carol"):
        with front_end.client() as client:
            assert client.login(user)[0] == 200
            workers += front_end.children()
    assert len(workers) == len(set(workers)) == 3
    assert eventually(lambda: front_end.resets == 3)
    assert front_end.bound == ["alice", "bob", "carol"]


@pytest.mark.parametrize("mode", [BASELINE, DYNAMIC, AUDIT])
def test_checked_answers_are_asked_for_in_mode_dynamic_only(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1)
    with front_end.client() as client:
        client.login("alice")
        assert client.json("GET", "/search?q=x")[0] == 200
    assert [query["checked"] for query in front_end.queries] == [mode == DYNAMIC]


@pytest.mark.parametrize("mode", [DYNAMIC, AUDIT])
def test_the_refused_documents_are_counted_and_not_shown(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1)
    numbers = [front_end.document(f"title {i}", f"blue {i}") for i in range(4)]
    front_end.engine = lambda _query: numbers
    front_end.refused = {numbers[1], numbers[2]}
    with front_end.client() as client:
        client.login("alice")
        answer = client.json("GET", "/search?q=blue")[1]
    assert [result["id"] for result in answer["results"]] == [numbers[0], numbers[3]]
    assert answer["withheld"] == 2


def test_a_late_answer_to_the_slots_previous_session_is_nobodys(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1, options=("--answer-timeout", "1"))
    secret = front_end.document("alice's", "secret")
    late: list[int] = []

    def engine(query: dict[str, Any]) -> list[int] | None:
        late.append(query["query"])
        if query["user"] == "alice":
            return None
        front_end.answer_again(late[0], [secret])
        return []

    front_end.engine = engine
    for user, expected in (("alice", 504), ("bob", 200)):
        with front_end.client() as client:
            client.login(user)
            status, answer = client.json("GET", "/search?q=secret")
            assert status == expected
            assert answer.get("results", []) == []
    assert late[0] != late[1]


def test_profile_and_history_are_the_users_own(any_mode: FrontEnd) -> None:
    any_mode.profile("alice", ["bob", "carol"], [])
    with any_mode.client() as client:
        client.login("alice")
        for query in ("one", "two", "three"):
            client.json("GET", f"/search?q={query}")
    assert any_mode.queries[0] | {"query": 0, "checked": False} == {
        "query": 0,
        "user": "alice",
        "friends": ["bob", "carol"],
        "text": "one",
        "count": 10,
        "checked": False,
    }
    history = f"history:alice/{any_mode.region}"
    assert any_mode.redis_command("LRANGE", history, "0", "-1").split() == ["three", "two", "one"]
    assert sorted(any_mode.redis_command("KEYS", "*").split()) == [history, "profile:alice"]


def test_the_history_is_bounded(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        client.login("alice")
        for i in range(105):
            client.json("GET", f"/search?q={i}")
    history = front_end.redis_command("LRANGE", "history:alice/", "0", "-1").split()
    assert history == [str(i) for i in range(104, 4, -1)]


def test_nobody_gets_anything_without_logging_in(any_mode: FrontEnd) -> None:
    any_mode.engine = lambda _query: [any_mode.document("secret", "secret")]
    with any_mode.client() as client:
        status, answer = client.json("GET", "/search?q=secret")
        assert status == 401
        assert "POST /session" in answer["error"]
        assert client.headers["WWW-Authenticate"].startswith("Shai-Session")
    assert any_mode.queries == []
    assert any_mode.redis_command("DBSIZE") == "0"


def test_another_sites_page_gets_nothing(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        client.login("alice")
        status, body = client.ask("GET", "/search?q=x", Sec_Fetch_Site="cross-site")
        assert status == 403
        assert "another site" in json.loads(body)["error"]
        assert client.ask("GET", "/search?q=x", Sec_Fetch_Site="same-origin")[0] == 200
