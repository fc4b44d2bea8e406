# SPDX-License-Identifier: BSD-2-Clause
"""Servers that answer anything, to import and to verify."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from dashboards import answers
from dashboards.__main__ import main
from dashboards.importing import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEP = b"[" * 200_000
TERMINAL = b'{"status":"error","message":"\\u001b]0;x\\u0007","error":"\\u001b]0;x\\u0007"}'


class Server(ThreadingHTTPServer):
    status = 200
    body = b""
    endless = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(self.server.body)
            while self.server.endless:
                self.wfile.write(b" " * 65536)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.endless = False
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("command", ["import --grafana", "verify --prometheus"])
@pytest.mark.parametrize(
    ("status", "body"),
    [(200, DEEP), (403, DEEP), (422, TERMINAL), (200, TERMINAL), (999, b""), (200, b'{"data":null}')]
    + [(200, b'{"data":{}}'), (200, b'{"data":{"result":[{"metric":{},"values":[["a","b"]]}]}}'), (200, b"[1]")]
    + [(200, b'{"data":{"result":[{"metric":1,"values":[]}]}}')]
    + [(200, b'{"data":{"result":[{"metric":{},"values":[[1,1%s]]}]}}' % (b"0" * 400))]
    + [(200, b'{"url":"%s"}' % url) for url in (b"//evil.example/x", b"http://evil.example", b"http://[", b"x")]
    + [(200, b'{"url":"%s"}' % url) for url in (rb"/\t/evil.example/x", rb"/\t/[", rb"/a\u202eb")],
)
def test_any_answer_is_one_line(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    status: int,
    body: bytes,
) -> None:
    monkeypatch.setenv(TOKEN, "secret")
    server.status, server.body = status, body
    assert main([*command.split(), server.url]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert len(printed.err.splitlines()) == 1
    assert "\x1b" not in printed.err
    assert "\x07" not in printed.err


def test_an_endless_answer_is_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, "secret")
    server.endless = True
    assert main(["import", "--grafana", server.url]) == 1
    assert "Grafana" in capsys.readouterr().err


def test_a_text_stays_on_its_line() -> None:
    assert answers.printable("a\n\x1b[2J\u202e") == "a\ufffd\ufffd[2J\ufffd"
