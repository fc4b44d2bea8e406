# SPDX-License-Identifier: BSD-2-Clause
"""Nobody who can connect keeps the server from serving others, or takes its process' descriptors."""

from __future__ import annotations

import contextlib
import urllib.request
from typing import TYPE_CHECKING

import gevent
import gevent.event
import gevent.socket
import pytest

from loadgen.driving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

    from gevent.pywsgi import WSGIServer

BODY = b"x" * 100_000
HEAD = "HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE = 180


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., WSGIServer]]:
    monkeypatch.setattr(serving, "_REQUEST_SECONDS", 0.2)
    with contextlib.ExitStack() as stack:

        def start(before: Callable[[WSGIEnvironment], object] = dict) -> WSGIServer:
            def application(environ: WSGIEnvironment, answer: StartResponse) -> list[bytes]:
                before(environ)
                answer("200 OK", [("Content-Length", str(len(BODY)))])
                return [BODY]

            made = serving.server(("127.0.0.1", 0), application)
            made.start()
            stack.callback(made.stop)
            return made

        yield start


def read(server: WSGIServer) -> bytes:
    url = f"http://127.0.0.1:{server.server_port}/"
    job = gevent.get_hub().threadpool.spawn(lambda: urllib.request.urlopen(url, timeout=PATIENCE).read())
    found = job.get()
    assert isinstance(found, bytes)
    return found


def served(server: WSGIServer) -> int:
    assert server.pool is not None
    return len(server.pool)


@pytest.mark.parametrize(
    "said",
    [
        "",
        f"GET / {HEAD}",
        f"POST / {HEAD}Content-Length: 100000000\r\n\r\n",
        f"GET / {HEAD}\r\n" * 100,  # and reads none of the answers
    ],
    ids=["nothing", "half a request", "half a body", "many requests"],
)
def test_connections_that_do_not_use_their_place_are_closed(serve: Callable[..., WSGIServer], said: str) -> None:
    server = serve()
    with contextlib.ExitStack() as stack:
        for _ in range(2 * serving.CONNECTIONS):
            idle = stack.enter_context(gevent.socket.create_connection(("127.0.0.1", server.server_port)))
            idle.sendall(said.encode())
        assert read(server) == BODY


def test_the_oldest_connection_that_says_nothing_gives_way(
    serve: Callable[..., WSGIServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are closed for their time alone can be opened again at once, and nobody else would have his turn."""
    monkeypatch.setattr(serving, "_REQUEST_SECONDS", 3600)
    go = gevent.event.Event()
    server, most = serve(lambda environ: environ["PATH_INFO"] == "/slow" and go.wait(PATIENCE)), 0
    with contextlib.ExitStack() as stack:

        def connect(said: str = "") -> gevent.socket.socket:
            found = stack.enter_context(gevent.socket.create_connection(("127.0.0.1", server.server_port)))
            found.sendall(said.encode())
            return found

        slow = connect(f"GET /slow {HEAD}\r\n")
        silent: list[gevent.socket.socket] = []
        for _ in range(2 * serving.CONNECTIONS):
            silent.append(connect(f"GET / {HEAD}" * (len(silent) % 2)))
            gevent.sleep()
            most = max(most, served(server))
        assert read(server) == BODY
        with gevent.Timeout(PATIENCE):
            assert silent[0].recv(1) == silent[1].recv(1) == b""
        assert serving.CONNECTIONS - 1 <= most <= serving.CONNECTIONS
        go.set()
        assert slow.recv(12) == b"HTTP/1.1 200", "a request is put aside for nobody"


def test_a_welcome_request_takes_its_time(serve: Callable[..., WSGIServer]) -> None:
    went_on = gevent.event.Event()

    def welcome(environ: WSGIEnvironment) -> None:
        serving.take_time(environ)
        gevent.spawn_later(5 * serving._REQUEST_SECONDS, went_on.set)  # noqa: SLF001
        assert went_on.wait(PATIENCE)

    assert read(serve(welcome)) == BODY


def test_clients_that_are_hung_up_on_leave_no_trace(
    serve: Callable[..., WSGIServer], capfd: pytest.CaptureFixture[str]
) -> None:
    """Any user of the machine could fill the terminal with them."""
    server = serve()
    with gevent.socket.create_connection(("127.0.0.1", server.server_port)) as idle, gevent.Timeout(PATIENCE):
        idle.sendall(b"GET / HT")
        assert idle.recv(1) == b""
        while served(server):
            gevent.sleep(0.01)
    assert capfd.readouterr().err == ""
