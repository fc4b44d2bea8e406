# SPDX-License-Identifier: BSD-2-Clause
"""What answers in the place of a member's monitor costs the operator little, and nothing else waits for it."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest
from aiohttp import web

from shai_operator.control.member_observer import MemberObserver
from shai_operator.monitors import answers, apart, client, counters, shapes, streams
from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorAnswerError, MonitorError, MonitorLateError
from testing.waiting import until_async
from tests.control.monitor_server import listening
from tests.control.test_strange_answers import asking, says

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from pathlib import Path

    from shai_operator.control.authority import ClientTLS

    Ask = Callable[[MonitorClient], Coroutine[Any, Any, object]]

MEMBER = "strange.sock"
LINES = 2048
FIRST_AND_LAST = 2
LIMIT_SECONDS = 30.0


def status(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.status()


def metrics(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.metrics()


def analyze(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.analyze("p", "All", full=False, progress=lambda _: None)


def compare(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.compare([], lambda _: None)


def run(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.run("GET", "p", "t", "i", "s")


def task(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.task("p", "t", "start")


def read(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.read({})


def apply(client: MonitorClient) -> Coroutine[Any, Any, object]:
    return client.apply([], "")


def many(one: str, number: int) -> str:
    return "[" + ",".join([one] * number) + "]"


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[None]:
    """Return a list that gets an entry for each call of a function."""
    calls: list[None] = []
    function = getattr(module, name)

    def counting(*arguments: object) -> object:
        calls.append(None)
        return function(*arguments)

    monkeypatch.setattr(module, name, counting)
    return calls


VALUES = answers.STATUS.values or 0
PIPELINES = many('{"name": "a"}', 4097)
TASKS = many('{"name": "a", "state": "b"}', 65)
FLOWS = many('{"task": "a", "access": "read"}', 21)
ACCESSES = many('{"task": "a", "access": "read", "conduits": "b"}', 2 * 64 * 256 + 1)

REFUSALS = '{"state": "Failed", "refusals": ' + many("{}", 9) + "}"


@pytest.mark.parametrize(
    ("ask", "path", "text", "says_why", "most_checks"),
    [
        # As large as it may be, but of many small values: none of them becomes an object.
        (status, "/v1/status", '{"pipelines": ' + many("{}", VALUES) + "}", f"more than {VALUES} values", 0),
        (status, "/v1/status", '{"unread": ' + many("[]", VALUES) + "}", f"more than {VALUES} values", 0),
        (task, "/v1/pipelines/p/tasks/t:start", many("1", VALUES + 1), f"more than {VALUES} values", 0),
        (apply, "/v1/bundles", many("1", VALUES + 1), f"more than {VALUES} values", 0),
        (compare, "/v1/comparisons", '{"comparison": ' + many("1", VALUES) + "}", f"more than {VALUES} values", 0),
        (analyze, "/v1/analyses", '{"analysis": ' + many("{}", 2 * VALUES) + "}", f"more than {2 * VALUES} values", 0),
        (read, "/v1/readings", '{"sealed": "' + "a" * (1 << 20) + '"}', "longer than 1024 KiB", 0),
        # Lists of what is to be looked at.
        (status, "/v1/status", '{"pipelines": ' + PIPELINES + "}", "pipelines has 4097 entries; expected at most", 20),
        (status, "/v1/status", '{"pipelines": [{"name": "a", "tasks": ' + TASKS + "}]}", "at most 64", 20),
        (compare, "/v1/comparisons", '{"comparison": {"opened": ' + FLOWS + "}}", "at most 20", 20),
        (analyze, "/v1/analyses", '{"analysis": {"accesses": ' + ACCESSES + "}}", "at most 32768", 20),
        (run, "/v1/pipelines/p/tasks/t/runs/i", REFUSALS, "at most 8", 20),
        # Progress that is no progress.
        (analyze, "/v1/analyses", '{"progress": {"phase": "' + "a" * 5000 + '"}}', "longer than 4 KiB", 0),
        (analyze, "/v1/analyses", "{}\n" * 1000, "no progress, result or problem", 0),
    ],
)  # fmt: skip
async def test_an_answer_is_refused_before_it_costs_anything(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Ask,
    path: str,
    text: str,
    says_why: str,
    most_checks: int,
) -> None:
    checks = counted(monkeypatch, shapes, "checked")
    socket = tmp_path / MEMBER
    async with listening(socket, {path: says(text)}), MonitorClient(socket=socket) as monitor:
        with pytest.raises(MonitorError, match=says_why) as refused:
            await ask(monitor)
    assert path in str(refused.value)
    assert MEMBER in str(refused.value)
    assert len(checks) <= most_checks


async def test_the_largest_status_of_a_real_member_is_read(tmp_path: Path) -> None:
    session = {"instance": "worker(alice, de)", "task": "worker", "principal": "alice", "region": "de", "slot": 1}
    refusal = {"operation": "open", "conduits": "documents", "policy": "closed", "count": 1}
    one = {"name": "t" * 63, "state": "Running", "completed": True, "lastRun": {"refusals": [refusal] * 8}}
    pipeline = {"name": "p" * 63, "tasks": [one] * 64, "sessions": [session] * 100, "sessionTotal": 1}
    async with asking(tmp_path, status=says(json.dumps({"ready": True, "pipelines": [pipeline] * 40}))) as monitor:
        found = await monitor.status()
    assert [len(read["tasks"]) for read in found["pipelines"]] == [64] * 40


@pytest.mark.parametrize(
    "metrics_text",
    [
        "shai_sessions_total 1\n" * (counters.MOST_LINES + 1),
        'shai_decisions_total{a="' + "b" * counters.MOST_BYTES + '"} 1\n',
    ],
)
async def test_metrics_without_end_are_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics_text: str
) -> None:
    parsed = counted(monkeypatch, counters, "text_string_to_metric_families")
    async with asking(tmp_path, metrics=says(metrics_text)) as monitor:
        with pytest.raises(MonitorError, match="more than 1024 bytes, or they have more than 16384") as refused:
            await metrics(monitor)
    assert (MEMBER in str(refused.value), parsed) == (True, [])


async def test_only_the_counters_that_are_used_are_parsed(tmp_path: Path) -> None:
    others = "# TYPE go_threads gauge\ngo_threads 7\n\nshai_sessions_total_more 5\n" * 1000
    text = (
        'shai_sessions_total{mode="shai",pipeline="p"} 2\n'
        + others
        + 'shai_sessions_total{mode="shai",pipeline="q"} 3\n'
        + 'shai_decisions_total{allowed="true",pipeline="p"} 4\nshai_decisions_total{allowed="false",pipeline="p"} 1\n'
        + 'shai_decision_seconds_bucket{kind="open",le="1"} 9\nshai_decision_seconds_sum{kind="open"} 0.5'
    )
    async with asking(tmp_path, metrics=says(text)) as monitor:
        assert await monitor.metrics() == {
            "shai_sessions_total": 5.0,
            "shai_decisions_total": 4.0,
            "shai_decisions_total/denied": 1.0,
            "shai_decision_seconds_sum": 0.5,
        }


def streaming(pieces: Iterable[bytes]) -> Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for piece in pieces:
            await answer.write(piece)
        return answer

    return handler


async def test_progress_is_dropped_unread_and_read_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = counted(monkeypatch, answers, "parse")
    told: list[object] = []
    pieces = [b'{"progress":{}}\n' * LINES, b'{"analysis":{"classes":3}}\n']
    loop = asyncio.get_running_loop()
    async with asking(tmp_path, analyses=streaming(pieces)) as monitor:
        began = loop.time()
        found = await monitor.analyze("p", "All", full=False, progress=told.append)
        took = loop.time() - began
    assert found["classes"] == 3
    assert took > LINES / streams.LINES_PER_SECOND - 0.1, "others have the time between"
    assert len(parsed) <= FIRST_AND_LAST + took / streams.PROGRESS_SECONDS
    assert len(told) == len(parsed) - 1


async def test_lines_come_in_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PROGRESS_SECONDS", 0.0)
    text = '{"progress": {"phase": "views", "done": 1}}\n\n{"progress": {"done": 2}}\n{"analysis": {"classes": 3}}'
    told: list[object] = []
    async with asking(tmp_path, analyses=streaming(letter.encode() for letter in text)) as monitor:
        found = await monitor.analyze("p", "all", full=False, progress=told.append)
    assert told == [{"phase": "views", "done": 1, "total": 0}, {"phase": "", "done": 2, "total": 0}]
    assert (found["classes"], found["warnings"]) == (3, [])


async def test_a_stream_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "STREAMED", aiohttp.ClientTimeout(total=0.05))

    async def without_end(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b'{"progress":{}}\n')
            await asyncio.sleep(0.001)

    for ask, word in ((analyze, "analyses"), (compare, "comparisons")):
        async with asking(tmp_path, **{word: without_end}) as monitor:
            with pytest.raises(MonitorLateError):
                async with asyncio.timeout(LIMIT_SECONDS):
                    await ask(monitor)


@pytest.mark.parametrize(
    ("ask", "path", "text"),
    [
        (status, "/v1/status", "{}"),
        (analyze, "/v1/analyses", '{"analysis": {"classes": 1}}'),
        (compare, "/v1/comparisons", '{"comparison": {"flowsBefore": 1}}'),
        (run, "/v1/pipelines/p/tasks/t/runs/i", '{"state": "Stopped"}'),
        (task, "/v1/pipelines/p/tasks/t:start", '{"state": "Running"}'),
        (read, "/v1/readings", '{"sealed": "YQ=="}'),
    ],
)
async def test_the_operator_goes_on_while_an_answer_is_parsed_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, path: str, text: str
) -> None:
    """What checks waits for the operator's event loop, which would wait for ever if it were kept by that."""
    goes_on, kept = threading.Event(), threading.Event()
    check, threads = shapes.checked, set[int]()

    def waiting(*arguments: Any) -> object:
        threads.add(threading.get_ident())
        kept.set()
        assert goes_on.wait(LIMIT_SECONDS), "nothing else went on"
        return check(*arguments)

    monkeypatch.setattr(shapes, "checked", waiting)
    socket = tmp_path / MEMBER
    async with (
        listening(socket, {path: says(text)}),
        MonitorClient(socket=socket, apart=apart.members()) as monitor,
    ):
        asked = asyncio.create_task(ask(monitor))
        await until_async(kept.is_set)
        goes_on.set()
        await asked
    assert threading.get_ident() not in threads


async def test_members_are_asked_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[int]()
    connector = aiohttp.TCPConnector

    def connecting(**settings: Any) -> aiohttp.TCPConnector:
        threads.add(threading.get_ident())
        return connector(**settings)

    monkeypatch.setattr(aiohttp, "TCPConnector", connecting)
    tls = ssl.create_default_context()
    observer = MemberObserver(cast("ClientTLS", SimpleNamespace(context=lambda: tls)), lambda: None)
    observer.look_at({"a": "127.0.0.1:1"}, 600.0)
    await until_async(lambda: observer.of("a").looked)
    await observer.close()
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


async def test_what_is_cancelled_ends_apart(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def without_end(_: web.Request) -> web.StreamResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return web.Response()

    socket = tmp_path / MEMBER
    async with (
        listening(socket, {"/v1/status": without_end}),
        MonitorClient(socket=socket, apart=apart.members()) as monitor,
    ):
        asked = asyncio.create_task(monitor.status())
        await begun.wait()
        asked.cancel()
        await until_async(ended.is_set, "the monitor sees that nobody waits")
        with pytest.raises(asyncio.CancelledError):
            await asked


@pytest.mark.parametrize("ask", [status, run, compare])
async def test_nothing_is_read_that_comes_before_an_answer(ask: Ask, tmp_path: Path) -> None:
    """Interim responses have no limit to their number, and a run none to its time."""
    gone = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" * LINES)
                await writer.drain()
        except OSError:
            gone.set()
        finally:
            writer.transport.abort()

    socket = tmp_path / MEMBER
    async with await asyncio.start_unix_server(serve, socket), MonitorClient(socket=socket) as asked:
        async with asyncio.timeout(LIMIT_SECONDS):
            with pytest.raises(MonitorAnswerError, match=f"{MEMBER}: interim response 103"):
                await ask(asked)
            await gone.wait()


@pytest.mark.parametrize("ask", [run, analyze])
async def test_few_large_answers_of_a_member_are_held_at_one_time(ask: Ask, tmp_path: Path) -> None:
    """The others stay where they are, and small ones are read all the same."""
    sent: list[None] = []
    end = asyncio.Event()

    async def large(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(32):
            await answer.write(b" " * answers.SMALL_BYTES)
        sent.append(None)
        await end.wait()
        return answer

    routes = {
        "/v1/pipelines/p/tasks/t/runs/i": large,
        "/v1/analyses": large,
        "/v1/status": says('{"ready": true}'),
    }
    socket = tmp_path / MEMBER
    async with listening(socket, routes), MonitorClient(socket=socket) as asked:
        asking_ = [asyncio.ensure_future(ask(asked)) for _ in range(8)]
        await until_async(lambda: len(sent) == answers.LARGE_AT_ONCE)
        assert (await asked.status())["ready"]
        assert len(sent) == answers.LARGE_AT_ONCE
        end.set()
        assert len(await asyncio.gather(*asking_, return_exceptions=True)) == len(sent)
