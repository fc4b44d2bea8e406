# SPDX-License-Identifier: BSD-2-Clause
"""Admission requests of anybody who reaches the address, with the real parser."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from shai_operator.control import connections
from shai_operator.control.authority import ServerTLS
from shai_operator.control.connections import Connections
from shai_operator.handlers import admission
from shai_operator.handlers.admission import Admission
from shai_operator.metrics import counted
from shai_operator.monitors.errors import MonitorUnreachableError
from shai_operator.monitors.validator import Answer, Validator
from shai_operator.providers import authority
from testing.operators import SHAI
from testing.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from shai_operator.control.stored import Stored

ROOT = authority.create()
GOOD, BAD = "policy p { read :- true. }", "policy p { read :- nope(X). }"


def review(plural: str = "policies", kind: str = "Policy", **spec: Any) -> dict[str, Any]:
    body = {"apiVersion": "shai.dev/v1alpha1", "kind": kind, "metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    resource = {"group": "shai.dev", "version": "v1alpha1", "resource": plural}
    return {"request": {"uid": "u", "operation": "CREATE", "resource": resource, "object": body}}


class Caller:
    """Sends requests to the admission server, as the API server does."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._tls = ssl.create_default_context(cadata=ROOT.certificate)

    async def ask(self, content: bytes | dict[str, Any], plural: str = "policies") -> tuple[int, Any]:
        """Return the status, and the response in the review or the text."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        url = f"https://127.0.0.1:{self.port}/{plural}"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=io.BytesIO(data), ssl=self._tls) as answer,
        ):
            text = await answer.text()
            assert answer.headers.get("Connection") == "close" or answer.status != 200
            return answer.status, json.loads(text)["response"] if answer.status == 200 else text


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncIterator[Caller]:
    async with (
        Validator(SHAI, tmp_path) as validator,
        _serving(Admission(validator, cast("Stored", None)), tmp_path) as port,
    ):
        yield Caller(port)


@asynccontextmanager
async def _serving(under_test: Admission, directory: Path) -> AsyncIterator[int]:
    tls = ServerTLS(ROOT, "127.0.0.1", directory)
    (listening,) = connections.listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    served = Connections(under_test.application, counted.ADMISSIONS_REJECTED, tls=tls.context, once=True)
    async with served.serve([listening]):
        yield port
    assert list(directory.glob("*.pem")) == [], "no key stays in a file"  # noqa: ASYNC240 - as below


async def test_what_the_api_server_asks_is_answered(caller: Caller) -> None:
    assert await caller.ask(review(text=GOOD)) == (200, {"uid": "u", "allowed": True})
    status, refused = await caller.ask(review(text=BAD))
    assert (status, refused["allowed"], refused["status"]["code"]) == (200, False, 422)
    assert "nope" in refused["status"]["message"]
    warned = (await caller.ask(review(text=GOOD, mode="Audit")))[1]
    assert warned["warnings"] == ["Policy p is in mode Audit: what it forbids is recorded, not denied"]


async def test_a_text_is_linted(caller: Caller) -> None:
    once = 'policy p { read :- sKeyIs(K), concat(F, "friends/", K), F says friend(Q). }'
    refused = (await caller.ask(review(text=once)))[1]
    assert not refused["allowed"]
    assert "spec.text:1:71: variable Q is used once, so it restricts nothing" in refused["status"]["message"]
    assert (await caller.ask(review(text=once.replace("Q", "_Q"))))[1]["allowed"]
    unused = (await caller.ask(review(text="policy p(owner) { read :- true. }")))[1]
    assert unused["allowed"]
    assert unused["warnings"] == [
        "spec.text:1:10: parameter owner is not used; use it in a clause, or remove it",
    ]


async def test_a_policy_may_include_what_is_applied_later(caller: Caller) -> None:
    library = (await caller.ask(review(text='policy p includes library/private("alice") { }')))[1]
    assert library["allowed"], library
    other = (await caller.ask(review(text='policy p includes other("alice") { }')))[1]
    assert other["allowed"], other
    wrong = (await caller.ask(review(text='policy p includes other("alice") { read :- maybe(). }')))[1]
    assert not wrong["allowed"], "its own text is checked nevertheless"
    itself = (await caller.ask(review(text="policy p includes p { read :- true. }")))[1]
    assert not itself["allowed"]
    assert "includes itself" in itself["status"]["message"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"request": 1}',
        b'{"request": {"uid": "u"}}',
        json.dumps(review("tasks", "Task")).encode(),
        json.dumps({"request": {**review()["request"], "object": None}}).encode(),
        json.dumps({"request": {**review()["request"], "uid": 1}}).encode(),
    ],
)
async def test_what_is_no_review_is_refused(caller: Caller, content: bytes) -> None:
    assert await caller.ask(content) == (400, "this is no AdmissionReview with an object of policies.shai.dev")


async def test_other_paths_say_nothing(caller: Caller) -> None:
    for path in ("", "metrics", "principals"):
        assert (await caller.ask(review(text=GOOD), path))[0] in (404, 405)


async def test_what_is_too_large_is_not_read_to_its_end(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_LARGEST_REVIEW", 1 << 16)
    assert (await caller.ask(review(text="#" * (1 << 15))))[0] == 200
    assert (await caller.ask(review(text="#" * (1 << 20))))[0] == 413


async def test_all_requests_together_are_held_to_a_limit(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger who sends much and does not end takes no memory, and others are answered when it is gone."""
    monkeypatch.setattr(admission, "_MOST_HELD", 1 << 20)
    content = json.dumps(review(text=GOOD)).encode()
    async with _half_sent(caller, content.ljust((1 << 20) - len(content) // 2)):
        status = 200
        async with asyncio.timeout(30):
            while status != 503:
                status, text = await caller.ask(content)
        assert text == "too much is being checked; try again"
    async with asyncio.timeout(30):
        while (await caller.ask(content))[0] != 200:
            pass


class Held:
    """Stands in for the parser: it is done with objects of namespace n when it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = 0

    async def check(self, objects: list[dict[str, Any]], *, alone: bool) -> Answer:
        assert alone
        if objects[0]["metadata"]["namespace"] == "n":
            self.asked += 1
            await self.go.wait()
        return Answer((), {})


async def test_who_sends_many_objects_waits_for_their_turn_and_nobody_else_does(tmp_path: Path) -> None:
    held = Held()
    under_test = Admission(cast("Validator", held), cast("Stored", None))
    other = review(text=GOOD)
    other["request"]["object"]["metadata"]["namespace"] = "other"
    async with _serving(under_test, tmp_path) as port, asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        caller = Caller(port)
        flood = [tasks.create_task(caller.ask(review(text=GOOD))) for _ in range(9)]
        await until_async(lambda: held.asked == 2)
        assert (await caller.ask(other))[0] == 200
        assert held.asked == 2
        held.go.set()
        assert {status for status, _ in await asyncio.gather(*flood)} == {200}
    assert held.asked == 9


async def test_a_request_that_does_not_end_is_given_up(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_READ_SECONDS", 0.1)
    async with _half_sent(caller, b"{") as reader, asyncio.timeout(30):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")


@asynccontextmanager
async def _half_sent(caller: Caller, content: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Send the beginning of a request."""
    tls = ssl.create_default_context(cadata=ROOT.certificate)
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.port, ssl=tls)
    writer.write(f"POST /policies HTTP/1.1\r\nHost: h\r\nContent-Length: {2 * len(content)}\r\n\r\n".encode())
    writer.write(content)
    try:
        yield reader
    finally:
        writer.transport.abort()


async def test_who_begins_no_handshake_makes_room(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 4)
    before = counted.ADMISSIONS_REJECTED._value.get()  # noqa: SLF001 - the client library has no other way to read it
    idle = [await asyncio.open_connection("127.0.0.1", caller.port) for _ in range(12)]
    try:
        assert (await caller.ask(review(text=GOOD)))[0] == 200
        assert counted.ADMISSIONS_REJECTED._value.get() > before  # noqa: SLF001
    finally:
        for _, writer in idle:
            writer.close()


class Silent:
    """A parser that does not answer."""

    async def check(self, *_: object, **__: object) -> object:
        raise MonitorUnreachableError("/private/validate.sock: no answer")


async def test_a_parser_that_does_not_answer_admits_nothing_and_tells_no_files(tmp_path: Path) -> None:
    async with _serving(Admission(cast("Validator", Silent()), cast("Stored", None)), tmp_path) as port:
        status, answer = await Caller(port).ask(review(text=GOOD))
    assert (status, answer["allowed"]) == (200, False)
    assert answer["status"] == {"code": 503, "message": "the operator cannot check it now; try again"}
