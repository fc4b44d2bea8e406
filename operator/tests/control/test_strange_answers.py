# SPDX-License-Identifier: BSD-2-Clause
"""What answers in the place of a member's monitor may answer anything: it harms neither others nor the operator."""

from __future__ import annotations

import gzip
import json
import logging
import ssl
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp import web

from shai_operator.control.bringup import BringUp, BringUpError, Runner
from shai_operator.control.member_observer import MemberObserver
from shai_operator.monitors import reading
from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorError
from shai_operator.reconcile.members import Monitor, PipelineTasks
from shai_operator.reconcile.texts import LONGEST
from testing.waiting import until_async
from tests.control.monitor_server import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from shai_operator.control.authority import ClientTLS

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STRANGE, GOOD = "strange", "good"
ADDRESSES = {STRANGE: "10.0.0.1:7600", GOOD: "10.0.0.2:7600"}
LABEL = f"{'a' * 30}.{'b' * 30}"
PIECE = b"x" * (1 << 20)
"""Of an answer without end."""
PIECES = 20
TEXT = "no \ud800\x1b[31m\u202e" + "x" * 3_000_000


def says(text: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        body = text.encode() if isinstance(text, str) else text
        return web.Response(body=body, status=status, content_type="application/json", headers=headers)

    return handler


def endless(status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=status)
        await answer.prepare(request)
        for _ in range(PIECES):
            await answer.write(PIECE)
        return answer

    return handler


@asynccontextmanager
async def asking(tmp_path: Path, **routes: Handler) -> AsyncIterator[MonitorClient]:
    """Yield the client of a monitor; ``routes`` are by the path's last word."""
    paths = {"metrics": "/metrics", "tasks": "/v1/pipelines/{pipeline}/tasks/{task}"}
    socket = tmp_path / "strange.sock"
    async with (
        listening(socket, {paths.get(word, f"/v1/{word}"): handler for word, handler in routes.items()}),
        MonitorClient(socket=socket) as client,
    ):
        yield client


@asynccontextmanager
async def observing(
    tmp_path: Path, changed: Callable[[], None] = lambda: None, **routes: Handler
) -> AsyncIterator[MemberObserver]:
    """Yield the observer of a member that answers as ``routes`` say, and of one that answers as monitors do."""
    tls = ssl.create_default_context()
    members = MemberObserver(cast("ClientTLS", SimpleNamespace(context=lambda: tls)), changed)
    socket = tmp_path / "good.sock"
    good = {"/v1/status": says('{"ready": true}'), "/metrics": says("")}
    async with asking(tmp_path, **routes) as client, listening(socket, good):
        for name, one in ((STRANGE, client), (GOOD, MonitorClient(socket=socket))):
            members.of(name).client, members.of(name).connection = one, (ADDRESSES[name], tls)
        members.look_at(ADDRESSES, 0.01)
        try:
            yield members
        finally:
            await members.close()


async def looks(members: MemberObserver) -> None:
    """Wait until both members have been looked at again; the good one is known each time."""
    before = members.of(STRANGE).failures
    await until_async(lambda: members.of(STRANGE).failures > before + 1, "looks go on")
    await until_async(lambda: members.of(GOOD).monitor is not None, "the other member is known")


def with_label(**more: object) -> str:
    return json.dumps({"ready": True, "bundle": {"label": LABEL}, **more})


@pytest.mark.parametrize(
    "status",
    [
        says("<html>"),
        says(b"\xff"),
        says("[1]"),
        says("[" * 100_000),
        says("9" * 10_000),
        says('{"ready": 1}'),
        says('{"reason": {}}'),
        says('{"pipelines": {"name": "p"}}'),
        says('{"pipelines": [{"tasks": []}]}'),
        says('{"pipelines": [{"name": ["p"], "tasks": [{"name": "t", "state": "Running"}]}]}'),
        says('{"pipelines": [{"name": "p", "sessionTotal": 1e999}]}'),
        says('{"pipelines": [{"name": "p", "sessionTotal": 9223372036854775808}]}'),
        says('{"pipelines": [{"name": "p", "sessionTotal": -1}]}'),
        says('{"bundle": {"hash": "../../x"}}'),
        says(gzip.compress(b'{"ready": true}'), headers={"Content-Encoding": "gzip"}),
        says('{"title": "t", "errors": [{"a": 1}]}', 422),
        says('{"title": {}, "detail": 3}', 422),
        says('{"title": "t", "status": "x"}', 422),
        says("[]", 500),
        says(b"\xff\xfe", 500),
        endless(),
        endless(500),
    ],
)
async def test_a_strange_state_is_a_failed_look_at_one_member(tmp_path: Path, status: Handler) -> None:
    async with observing(tmp_path, status=status, metrics=says("")) as members:
        await looks(members)
        seen = members.of(STRANGE)
        assert seen.monitor is None
        assert "failed" not in seen.unreachable, "the answer is the cause, and the text says so"
        assert "/v1/status" in seen.unreachable or seen.unreachable == "t"


@pytest.mark.parametrize(
    "metrics",
    [
        says("shai_sessions_total NaN\n"),
        says("shai_sessions_total 1e300\n"),
        says("shai_sessions_total -1\n"),
        says("shai_sessions_total{ x\n"),
        says(b'shai_sessions_total{mode="\xff"} 1\n'),
        says("shai_sessions_total 1\n" * 16_385),
        says("shai_sessions_total{" + 'a="b",' * 200 + "} 1\n"),
        endless(),
    ],
)
async def test_strange_metrics_are_a_failed_look_at_one_member(tmp_path: Path, metrics: Handler) -> None:
    async with observing(tmp_path, status=says(with_label()), metrics=metrics) as members:
        await looks(members)
        assert "metric" in members.of(STRANGE).unreachable


async def test_an_error_that_nobody_expected_is_a_failed_look_and_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = reading.monitor

    def mistaken(status: dict[str, object]) -> Monitor:
        if status["reason"]:
            raise ZeroDivisionError("a mistake of the operator")
        return before(status)

    monkeypatch.setattr(reading, "monitor", mistaken)
    async with observing(tmp_path, status=says('{"reason": "x"}'), metrics=says("")) as members:
        await looks(members)
        assert members.of(STRANGE).unreachable == (
            "looking at it failed: ZeroDivisionError; the operator's log has more"
        )
        monkeypatch.undo()
        await until_async(lambda: members.of(STRANGE).monitor is not None, "it is known when it is not mistaken")
    assert [record.exc_info is not None for record in caplog.records if record.levelno >= logging.ERROR] == [True]


async def test_looks_begin_again_when_their_task_has_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def changed() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ZeroDivisionError

    async with observing(tmp_path, changed, status=says("{}"), metrics=says("")):
        await until_async(lambda: calls > 2, "looks go on")
    assert "looking at members ended" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_answers_without_end_are_not_read_to_their_end(tmp_path: Path) -> None:
    for status in (200, 500):
        routes = dict.fromkeys(("status", "metrics", "bundles", "validations", "tasks"), endless(status))
        routes |= dict.fromkeys(("comparisons", "analyses"), endless(status))
        async with asking(tmp_path, **routes) as client:
            for request in (
                client.status(),
                client.metrics(),
                client.apply([], ""),
                client.validate([]),
                client.task("p", "t", "start"),
                client.compare([], lambda _: None),
                client.analyze("p", "all", full=False, progress=lambda _: None),
            ):
                with pytest.raises(MonitorError, match="the answer is longer than"):
                    await request


async def test_a_small_answer_does_not_grow(tmp_path: Path) -> None:
    packed = gzip.compress(b"[" + b" " * (100 << 20) + b"]")
    async with asking(tmp_path, status=says(packed, headers={"Content-Encoding": "gzip"})) as client:
        with pytest.raises(MonitorError, match="utf-8"):
            await client.status()


async def test_nobody_is_sent_elsewhere(tmp_path: Path) -> None:
    elsewhere = says("", 307, {"Location": "http://monitor/v1/facts"})
    async with asking(tmp_path, status=elsewhere, facts=says('{"ready": true}')) as client:
        with pytest.raises(MonitorError, match="unexpected answer 307"):
            await client.status()


def assert_clean(text: str) -> None:
    assert text.encode()
    assert text.isprintable()
    assert "no \ufffd\ufffd[31m\ufffdxxx" in text
    assert len(text) <= LONGEST


async def test_texts_of_monitors_are_clean_and_short(tmp_path: Path) -> None:
    short = TEXT[:9000]
    problem = says(json.dumps({"title": "start", "detail": TEXT, "remedy": short, "errors": [short] * 9}), 409)
    async with asking(tmp_path, status=problem) as client:
        with pytest.raises(MonitorError) as refused:
            await client.status()
        assert refused.value.status == 409
        for text in (str(refused.value), *refused.value.errors):
            assert_clean(text)
    pipelines = [PipelineTasks("p", (), ("t",))]
    failed = says(json.dumps({"state": "Failed", "message": TEXT}))
    state = says(json.dumps({"reason": TEXT, "bundle": {"label": short}}))
    async with asking(tmp_path, status=state, tasks=failed) as client:
        monitor = reading.monitor(await client.status())
        assert_clean(monitor.reason)
        assert len(monitor.bundle) == 64, "the schema allows no more"
        analyzed = Monitor(ready=True, analyzed=frozenset({"p"}))
        with pytest.raises(BringUpError) as error:
            await BringUp("m-0", client, analyzed, cast("Runner", None), lambda _: None).run(pipelines)
        assert_clean(error.value.args[0].removesuffix("; see its log on the member")[:LONGEST])
