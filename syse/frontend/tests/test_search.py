# SPDX-License-Identifier: BSD-2-Clause
"""The results of a search, with the real binary."""

from __future__ import annotations

import html.parser
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from .harness import BUILD, DYNAMIC, FrontEnd

if TYPE_CHECKING:
    from collections.abc import Callable

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ATTACK = "<script>alert('1')</script><img src=x onerror=alert(2)>\"&amp;"


def search(front_end: FrontEnd, query: str, options: str = "") -> tuple[int, Any]:
    with front_end.client() as client:
        assert client.login("alice")[0] == 200
        return client.json("GET", f"/search?q={quote(query)}{options}")


class Elements(html.parser.HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_result_shows_the_document(front_end: FrontEnd) -> None:
    number = front_end.document("Aback", "Backwards;\n  toward the   back.", owner="bob", visibility="friends")
    front_end.engine = lambda _query: [number]
    status, answer = search(front_end, "the back")
    assert status == 200
    advertisement = answer.pop("advertisement")
    assert answer == {
        "query": "the back",
        "user": "alice",
        "results": [
            {
                "id": number,
                "title": "Aback",
                "owner": "bob",
                "visibility": "friends",
                "snippet": "Backwards; toward the back.",
            },
        ],
        "withheld": 0,
    }
    assert f": {advertisement}\n" in (BUILD / "advertisements.txt").read_text(encoding="utf-8")


def test_the_same_query_gets_the_same_advertisement(front_end: FrontEnd) -> None:
    queries = [f"query {i}" for i in range(20)]
    first = [search(front_end, query)[1]["advertisement"] for query in queries]
    assert first == [search(front_end, query)[1]["advertisement"] for query in queries]
    assert len(set(first)) > 1


def test_results_of_interest_move_up_and_the_rest_keeps_its_order(front_end: FrontEnd) -> None:
    front_end.profile("alice", [], ["botany", "Big Bang", 7])  # type: ignore[list-item]
    texts = ["plain", "on BOTANY", "botanyx", "a big bang", "plain too", "Botany"]
    numbers = [front_end.document(f"t{i}", text) for i, text in enumerate(texts)]
    front_end.engine = lambda _query: numbers
    results = search(front_end, "x")[1]["results"]
    assert [result["title"] for result in results] == ["t1", "t3", "t5", "t0", "t2", "t4"]


def test_a_script_in_a_document_is_text(front_end: FrontEnd) -> None:
    number = front_end.document(ATTACK, f"hit {ATTACK}", owner=ATTACK[:80], visibility='x" onload="alert(3)')
    front_end.engine = lambda _query: [number]
    with front_end.client() as client:
        client.login("alice")
        page = client.ask("GET", f"/search?q={quote('hit ' + ATTACK)}", Accept=HTML)[1].decode()
        elements = Elements(page)
        assert not elements.names & {"script", "img"}
        assert not [name for name in elements.attributes if name.startswith("on")]
        assert elements.text.count(ATTACK) == 4  # titles of page and document, owner, snippet
        page = client.ask("GET", "/search?q=hit", Accept=HTML)[1].decode()
        assert Elements(page).text.count(ATTACK) == 3  # unmarked now: title, owner, snippet
        raw = client.ask("GET", f"/search?q={quote('hit ' + ATTACK)}")[1]
        assert b"<" not in raw
        assert json.loads(raw)["results"][0]["title"] == ATTACK


def test_a_page_without_scripts_shows_the_same(front_end: FrontEnd) -> None:
    number = front_end.document("Blue sky", "why the sky is blue", owner="bob", visibility="friends")
    front_end.engine = lambda _query: [number, 4000]
    with front_end.client() as client:
        client.login("alice")
        status, body = client.ask("GET", "/search?q=blue", Accept=HTML)
        page = body.decode()
    assert status == 200
    assert client.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "why the sky is <mark>blue</mark>" in page
    assert "<mark>Blue</mark> sky" in page
    text = Elements(page).text
    assert "by bob" in text
    assert "1 withheld" in text
    assert "mode baseline" in text


def test_an_error_is_a_page_for_those_who_want_pages(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        status, body = client.ask("GET", f"/search?q={quote(ATTACK)}", Accept=HTML)
        assert status == 401
        assert "nobody is logged in" in Elements(body.decode()).text


def test_the_documents_oddities_do_no_harm(front_end: FrontEnd) -> None:
    texts = [
        b"\xff\xfe needle \xc3",
        b"x" * 10_000_000 + b" needle",
        b"",
        b"needle \x00 \x1b end",
        b"needle" + b"\xcc" * 300,
    ]
    numbers = [front_end.document(f"t{i}", text) for i, text in enumerate(texts)]
    bare = front_end.document("replaced below", "")
    path = next(front_end.directory.glob(f"view/1/*/{bare}"))
    path.write_bytes(b"no header at all, but a needle")
    front_end.engine = lambda _query: [*numbers, bare, 0, 0xFFFFFFFF]
    status, answer = search(front_end, "needle")
    assert status == 200
    snippets = [result["snippet"] for result in answer["results"]]
    assert snippets[0] == "\ufffd\ufffd needle \ufffd"
    assert snippets[1].startswith("xxx")
    assert all(len(snippet.encode()) < 3 * 260 for snippet in snippets)
    assert snippets[2] == ""
    assert snippets[5] == "no header at all, but a needle"
    assert answer["results"][5]["title"] == ""
    assert answer["withheld"] == 2


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("/search", "q is missing"),
        ("/search?q=", "q is missing"),
        ("/search?q=+%20%09", "q is missing"),
        ("/search?Q=x", "q is missing"),
        ("/search?q=%zz", "percent-encoded"),
        ("/search?q=%4", "percent-encoded"),
        ("/search?q=%ff", "UTF-8"),
        ("/search?q=a%00b", "control"),
        ("/search?q=" + "x" * 1025, "exceeds 1024 bytes"),
        ("/search?q=x&n=0", "n is not a number from 1 to 64"),
        ("/search?q=x&n=65", "n is not a number from 1 to 64"),
        ("/search?q=x&n=-1", "n is not a number from 1 to 64"),
        ("/search?q=x&n=99999999999", "n is not a number from 1 to 64"),
    ],
)
def test_a_wrong_query_is_named(front_end: FrontEnd, target: str, cause: str) -> None:
    with front_end.client() as client:
        client.login("alice")
        status, answer = client.json("GET", target)
        assert status == 400
        assert cause in answer["error"]
    assert front_end.queries == []


@pytest.mark.parametrize("text", ["x" * 1024, '"' * 1024, "<" * 1024, "\u00e4\u65e5\U0001f600", "a\\b\"c'd", "AND (("])
def test_any_text_arrives_at_the_engine_as_it_is(front_end: FrontEnd, text: str) -> None:
    front_end.profile("alice", [f"friend{i:05}" for i in range(1000)], [])
    status, answer = search(front_end, text)
    assert status == 200
    assert front_end.queries[0]["text"] == text == answer["query"]
    assert all(len(line) < 4096 for line in front_end.lines)


def test_friends_that_do_not_fit_are_left_out_with_a_note(front_end: FrontEnd) -> None:
    friends = [f"friend{i:05}" for i in range(1000)]
    front_end.profile("alice", friends, [])
    answer = search(front_end, "x")[1]
    sent = front_end.queries[0]["friends"]
    assert 200 < len(sent) < 1000
    assert sent == friends[: len(sent)]
    assert len(front_end.lines[0]) <= 4094
    assert "friends" in answer["note"]


def test_a_paper_sized_list_of_friends_fits(front_end: FrontEnd) -> None:
    friends = [f"user{i:05}" for i in range(100)]
    front_end.profile("alice", friends, [])
    answer = search(front_end, "x" * 200)[1]
    assert front_end.queries[0]["friends"] == friends
    assert "note" not in answer


def test_a_silent_engine_is_an_error_and_its_late_answer_is_not_shown(start: Callable[..., FrontEnd]) -> None:
    front_end = start(options=("--answer-timeout", "1"))
    number = front_end.document("late", "late")
    front_end.engine = lambda query: [number] if query["text"] == "now" else None
    with front_end.client() as client:
        client.login("alice")
        status, answer = client.json("GET", "/search?q=never")
        assert status == 504
        assert "search engine" in answer["error"]
        assert len(client.json("GET", "/search?q=now")[1]["results"]) == 1


def test_a_dead_store_is_an_error_and_comes_back(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        client.login("alice")
        assert client.json("GET", "/search?q=x")[0] == 200
        front_end.redis.terminate()
        front_end.redis.wait()
        status, answer = client.json("GET", "/search?q=x")
        assert status == 503
        assert "profile" in answer["error"]
        assert len(front_end.queries) == 1
        front_end._start_redis()  # noqa: SLF001
        assert client.json("GET", "/search?q=x")[0] == 200


@pytest.mark.parametrize(
    "profile", ["", "{", "[]", '"x"', '{"friends":7,"interests":{}}', '{"friends":[1,null,"bob"]}']
)
def test_an_odd_profile_does_not_stop_a_search(front_end: FrontEnd, profile: str) -> None:
    front_end.redis_command("SET", "profile:alice", profile)
    status, answer = search(front_end, "x")
    assert status == 200
    assert ("note" in answer) == (profile in ("{", "[]", '"x"'))
    assert front_end.queries[0]["friends"] == (["bob"] if "bob" in profile else [])


def test_as_many_results_as_can_be_asked_for(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=DYNAMIC, workers=1)
    numbers = [front_end.document("<" * 256, "blue <" * 100) for _ in range(64)]
    front_end.engine = lambda query: numbers[: query["count"]]
    assert len(search(front_end, "blue", "&n=64")[1]["results"]) == 64


def test_the_page_runs_only_its_own_script_and_style(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        page = client.ask("GET", "/", Accept=HTML)[1].decode()
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", page) == ["data:,", "/"]
    assert " style=" not in page
    assert "innerHTML" not in page
