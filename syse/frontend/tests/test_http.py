# SPDX-License-Identifier: BSD-2-Clause
"""Limits and malformed requests, with the real binary."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .harness import PIPELINE, FrontEnd, sign

if TYPE_CHECKING:
    from collections.abc import Callable


def exchange(front_end: FrontEnd, data: bytes) -> bytes:
    """Send bytes and return all answers until the server closes."""
    with front_end.connect() as connection:
        connection.sendall(data)
        return until_closed(connection)


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


REFUSED = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "a TLS greeting": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), 400),
    "an unknown method": (b"BREW / HTTP/1.1\r\n\r\n", 400),
    "a blank in the target": (b"GET /a b HTTP/1.1\r\n\r\n", 400),
    "a bare line feed in a name": (b"GET / HTTP/1.1\r\nA\nB: c\r\n\r\n", 400),
    "a length that is no number": (b"POST /session HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
    "two lengths": (b"POST /session HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "a length and chunks": (
        b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a chunk size that is no number": (b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "one long field": (b"GET / HTTP/1.1\r\nA: " + b"x" * 20000 + b"\r\n\r\n", 431),
    "many fields": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 4000 + b"\r\n", 431),
    "a long target": (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", 431),
    "a body of 4 KiB and one": (b"POST /session HTTP/1.1\r\nContent-Length: 4097\r\n\r\n", 413),
    "a body of 1 GB": (b"POST /session HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n", 413),
    "a chunk without an end": (
        b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"800\r\n" + bytes(0x800) + b"\r\n",
        408,
    ),
    "too large chunks": (
        b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + (b"800\r\n" + bytes(0x800) + b"\r\n") * 5
        + b"0\r\n\r\n",
        413,
    ),
    "a proxy's request": (b"CONNECT example.org:443 HTTP/1.1\r\n\r\n", 405),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_refused_request_is_answered_and_the_connection_closed(start: Callable[..., FrontEnd], name: str) -> None:
    request, status = REFUSED[name]
    front_end = start(options=("--login-timeout", "1" if status == 408 else "60"))
    answer = exchange(front_end, request)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Connection: close" in head
    assert json.loads(body)["error"]
    for _ in range(2 * front_end.workers):
        with front_end.client() as client:
            assert client.ask("GET", "/healthz")[0] == 200


ANSWERED = {
    "404": ("GET", "/nothing", 404),
    "404 for a longer path": ("GET", "/session/x", 404),
    "405": ("PUT", "/session", 405),
    "405 for a page": ("POST", "/", 405),
    "401": ("GET", "/search?q=x", 401),
    "the page": ("GET", "/", 200),
    "the page with a query": ("GET", "/?q=x", 200),
    "an absolute URL": ("GET", "http://sys-e.example/healthz", 200),
    "HEAD": ("HEAD", "/", 200),
    "no path": ("OPTIONS", "*", 404),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_the_answered_request_keeps_the_connection(front_end: FrontEnd, name: str) -> None:
    method, path, status = ANSWERED[name]
    with front_end.client() as client:
        assert client.ask(method, path)[0] == status
        assert client.headers["Connection"] == "keep-alive"
        assert client.ask("GET", "/healthz") == (200, b'{"status":"ok"}\n')


def test_the_page_knows_its_pipeline(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        page = client.ask("GET", "/")[1]
    assert page.count(f'<meta name="pipeline" content="{PIPELINE}">'.encode()) == 1
    assert page.endswith(b"</html>\n")


def test_405_lists_the_methods(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        client.ask("PUT", "/session")
        assert client.headers["Allow"] == "GET, HEAD, POST, DELETE"


def test_a_body_of_a_gigabyte_is_not_read(front_end: FrontEnd) -> None:
    with front_end.connect() as connection:
        connection.sendall(b"POST /session HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n")
        connection.settimeout(0.2)
        sent, block = 0, bytes(1 << 16)
        with contextlib.suppress(OSError):
            while sent < 1 << 30:
                sent += connection.send(block)
        # The kernel's buffers on both sides, and the data that the server discards so that its answer arrives.
        assert sent < 64 << 20


def test_an_answer_arrives_although_the_client_goes_on_sending(front_end: FrontEnd) -> None:
    with front_end.connect() as connection:
        connection.sendall(b"POST /session HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n")
        assert connection.recv(1, socket.MSG_PEEK) == b"H"
        for _ in range(10):
            connection.sendall(bytes(20_000))  # would be an error if the server had simply closed
        assert until_closed(connection).startswith(b"HTTP/1.1 413 ")


def test_a_body_of_4_kib_is_read(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        assert client.json("POST", "/session", b" " * 4096)[0] == 400
        assert client.ask("GET", "/healthz")[0] == 200


def test_continue_is_said_when_it_is_expected(front_end: FrontEnd) -> None:
    with front_end.connect() as connection:
        connection.sendall(b"POST /session HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_pipelined_requests_are_answered_in_order(front_end: FrontEnd) -> None:
    paths = ["/healthz", "/nothing", "/session", "/search?q=x", "/healthz"]
    requests = b"".join(f"GET {path} HTTP/1.1\r\n\r\n".encode() for path in paths)
    answer = exchange(
        front_end, requests + b"POST /session HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 404, 200, 401, 200, 400]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_request_may_arrive_in_pieces(start: Callable[..., FrontEnd], size: int) -> None:
    front_end = start(options=("--login-timeout", "60"))
    request = b"POST /session HTTP/1.1\r\nAccept: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with front_end.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), size):
            connection.sendall(request[at : at + size])
            time.sleep(0.001)
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"<!DOCTYPE html>" in answer


def test_the_slow_one_is_told_and_closed(start: Callable[..., FrontEnd]) -> None:
    front_end = start(options=("--login-timeout", "1"))
    with front_end.connect() as connection:
        connection.settimeout(0.1)
        received = b""
        for byte in b"GET / HTTP/1.1\r\nA: " + b"b" * 1000:
            with contextlib.suppress(OSError):  # the answer was sent, and the server has closed
                connection.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                received = connection.recv(1000)
                break
    assert received.startswith(b"HTTP/1.1 408 ")


def test_the_idle_one_is_closed_without_a_word(start: Callable[..., FrontEnd]) -> None:
    front_end = start(options=("--login-timeout", "1"))
    with front_end.connect() as connection:
        assert until_closed(connection) == b""
    with front_end.client() as client:
        client.login("alice")
        time.sleep(1.3)
        assert client.ask("GET", "/healthz")[0] == 200


def test_the_one_who_does_not_read_is_given_up(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=1, options=("--request-timeout", "1"))
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", front_end.port))
        login(deaf)
        deaf.setblocking(False)  # noqa: FBT003
        with contextlib.suppress(BlockingIOError):
            for _ in range(2000):
                deaf.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with front_end.client() as client:  # the only worker is free again
            assert client.ask("GET", "/healthz")[0] == 200


def login(connection: socket.socket) -> None:
    """Log in as alice by hand."""
    connection.sendall(b"GET /session HTTP/1.1\r\n\r\n")
    nonce = json.loads(connection.recv(65536).partition(b"\r\n\r\n")[2])["nonce"]
    host, port = connection.getpeername()
    claim = json.dumps({"principal": "alice", "signature": sign("alice", f"{host}:{port}", "alice", nonce)}).encode()
    connection.sendall(b"POST /session HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(claim) + claim)
    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_nobody_keeps_a_worker_without_logging_in(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        closing = [client.ask("GET", "/healthz") and client.headers["Connection"] for _ in range(32)]
    assert closing == ["keep-alive"] * 31 + ["close"]


def test_a_thousand_requests_on_one_connection(front_end: FrontEnd) -> None:
    number = front_end.document("blue", "the sky is blue")
    front_end.engine = lambda _query: [number]
    with front_end.client() as client:
        client.login("alice")
        for _ in range(1000):
            status, answer = client.json("GET", "/search?q=blue")
            assert status == 200
            assert [result["id"] for result in answer["results"]] == [number]
    assert len({query["query"] for query in front_end.queries}) == 1000


def test_an_old_client_is_served(front_end: FrontEnd) -> None:
    answer = exchange(front_end, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b'{"status":"ok"}\n')


def test_every_answer_forbids_what_it_does_not_need(front_end: FrontEnd) -> None:
    with front_end.client() as client:
        for path in ("/", "/session", "/nothing"):
            client.ask("GET", path, Accept="text/html")
            assert client.headers["X-Content-Type-Options"] == "nosniff"
            assert client.headers["Cache-Control"] == "no-store"
            policy = client.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


def test_the_page_is_one_file_with_all_its_parts(front_end: FrontEnd) -> None:
    assets = Path(__file__).parents[1] / "assets"
    parts = [*assets.glob("*.js"), assets / "page.css"]
    with front_end.client() as client:
        status, page = client.ask("GET", "/", Accept="text/html")
    assert (status, len(parts)) == (200, 4)
    for part in parts:
        assert part.read_bytes() in page, f"{part.name} is missing: the Makefile joins the parts"
