# SPDX-License-Identifier: BSD-2-Clause
"""What the services do beside searching, with the real binary: clicks, topics, and the support's documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from .harness import AUDIT, BASELINE, BUILD, NONCE, PIPELINE, FrontEnd, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = "/support/accesses"


def as_alice(front_end: FrontEnd, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    with front_end.client() as client:
        assert client.login("alice")[0] == 200
        return client.json(method, path, body)


def history(front_end: FrontEnd, key: str) -> list[str]:
    return front_end.redis_command("LRANGE", key, "0", "-1").splitlines()


@pytest.mark.parametrize("mode", [BASELINE, AUDIT])
def test_a_click_shows_the_document_and_is_remembered(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1)
    numbers = [front_end.document(title, f"About the {title}.") for title in ("Anchor", "Moon")]
    for number in numbers:
        status, shown = as_alice(front_end, "POST", f"/click?id={number}")
        assert status == 200
    assert shown["snippet"] == "About the Moon."
    assert history(front_end, f"clicks:alice/{front_end.region}") == [f"{numbers[1]} Moon", f"{numbers[0]} Anchor"]


def test_a_click_on_what_may_not_be_read_is_not_remembered(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1)
    number = front_end.document("Bob's", "Secret.")
    front_end.refused.add(number)
    (front_end.directory / "classes").write_bytes(bytes(4 * 4096))
    assert as_alice(front_end, "POST", f"/click?id={number}")[0] == 403
    assert history(front_end, "clicks:alice/de") == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/click", 400),
        ("POST", "/click?id=x", 400),
        ("POST", "/click?id=999", 403),
        ("GET", "/click?id=1", 405),
        ("GET", "/policy", 400),
        ("GET", "/policy?id=", 400),
        ("GET", "/policy?id=-1", 400),
        ("GET", "/policy?id=4294967303", 400),
        ("POST", "/policy?id=x", 400),
        ("POST", "/policy?id=1", 400),
        ("DELETE", "/policy?id=1", 405),
        ("POST", "/topics", 404),
        ("GET", "/document?id=1&name=/x", 404),
    ],
)
def test_the_search_service_has_its_own_requests(front_end: FrontEnd, method: str, path: str, status: int) -> None:
    assert as_alice(front_end, method, path)[0] == status


def test_advertisements_follow_the_topics(front_end: FrontEnd) -> None:
    lines = (BUILD / "advertisements.txt").read_text(encoding="utf-8").splitlines()
    nautical = {line.partition(": ")[2] for line in lines if line.startswith("nautical: ")}
    front_end.redis_command("SET", "topics:alice", 'topic("nautical")\n')
    seen = {as_alice(front_end, "GET", f"/search?q=word{i}")[1]["advertisement"] for i in range(12)}
    assert seen == nautical


@pytest.mark.parametrize("mode", [BASELINE, AUDIT])
def test_histories_become_topics(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1, serve="interests")
    key = f"alice/{front_end.region}"
    front_end.redis_command("LPUSH", f"history:{key}", "rain", "SHIP, anchor?", "anchorage")
    front_end.redis_command("LPUSH", f"clicks:{key}", "7 Storm", "9 Acid rain", "8 Snow")
    assert as_alice(front_end, "POST", "/topics") == (200, {"topics": ["weather", "nautical", "science"]})
    content = 'topic("weather")\ntopic("nautical")\ntopic("science")'
    if mode == BASELINE:
        assert front_end.redis_command("GET", "topics:alice") == content
    else:
        assert front_end.written == [("topics:alice", content + "\n")]


def test_long_histories_fit_into_a_session(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1, serve="interests")
    for key in ("history:alice/de", "clicks:alice/de"):
        front_end.redis_command("LPUSH", key, *["rain " + "x" * 1019] * 100)
    assert as_alice(front_end, "POST", "/topics") == (200, {"topics": ["weather"]})


def test_topics_that_are_refused_are_told(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1, serve="interests")
    front_end.closed.add("topics:alice")
    status, answer = as_alice(front_end, "POST", "/topics")
    assert status == 403
    assert "write your topics: write to topics:alice: the policy of the conduit forbids it" in answer["error"]
    assert as_alice(front_end, "GET", "/search?q=x")[0] == 404


def choice(policy: str, signer: str = "alice") -> bytes:
    quoted = (json.dumps(text) for text in (PIPELINE, "alice", "/corpus/friends/alice/1.txt", policy))
    signed = "\n".join(["shai-policy-v1", *quoted, NONCE])
    return json.dumps({"policy": policy, "signature": key_of(signer).sign(signed.encode()).hex()}).encode()


def test_a_choice_is_offered_and_passed_on(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1)
    path, friends, private = "/corpus/friends/alice/1.txt", 'friends(owner: "alice")', 'private(owner: "alice")'
    front_end.offers[7] = (path, [friends, private])
    offer = {"conduit": path, "policy": friends, "choices": [friends, private], "nonce": NONCE, "pipeline": PIPELINE}
    assert as_alice(front_end, "GET", "/policy?id=7") == (200, offer)
    status, answer = as_alice(front_end, "POST", "/policy?id=7", choice(private, signer="bob"))
    assert (status, answer) == (403, {"error": "the signature is not of this choice"})
    assert as_alice(front_end, "POST", "/policy?id=7", choice(private)) == (200, {"policy": private})
    assert as_alice(front_end, "GET", "/policy?id=7")[1]["policy"] == private


@pytest.mark.parametrize("mode", [BASELINE, AUDIT])
def test_nothing_may_be_chosen_where_nothing_is_offered(start: Callable[..., FrontEnd], mode: int) -> None:
    front_end = start(mode=mode, workers=1)
    status, answer = as_alice(front_end, "GET", "/policy?id=7")
    assert (status, "choose" in answer["error"]) == (403, True)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_choice_needs_a_login_and_sys_es_own_page(start: Callable[..., FrontEnd], method: str) -> None:
    front_end = start(mode=AUDIT, workers=1)
    friends, private = 'friends(owner: "alice")', 'private(owner: "alice")'
    front_end.offers[7] = ("/corpus/friends/alice/1.txt", [friends, private])
    body = choice(private) if method == "POST" else None
    with front_end.client() as client:
        assert client.json(method, "/policy?id=7", body)[0] == 401
        assert client.login("alice")[0] == 200
        for site in ("cross-site", "whatever"):
            status, answer = client.ask(method, "/policy?id=7", body, Sec_Fetch_Site=site)
            assert (status, b"another site's page" in answer) == (403, True)
        assert front_end.offers[7][1] == [friends, private]
        assert client.ask(method, "/policy?id=7", body, Sec_Fetch_Site="same-origin")[0] == 200


def test_the_support_writes_its_entry_first(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1, serve="support")
    number = front_end.document("A day", "It rained.", owner="bob", visibility="private")
    target = f"/document?id={number}&name=/corpus/private/bob/1.txt"
    status, shown = as_alice(front_end, "GET", target)
    assert (status, shown["title"]) == (200, "A day")
    [(conduit, entry)] = front_end.written
    assert conduit == LOG
    assert entry.startswith('access("alice", "/corpus/private/bob/1.txt", 2')
    front_end.closed.add(LOG)
    assert as_alice(front_end, "GET", target)[0] == 403
    assert as_alice(front_end, "GET", "/document?id=1")[0] == 400
    assert as_alice(front_end, "GET", "/")[0] == 404
