# SPDX-License-Identifier: BSD-2-Clause
"""Whether servers say that they are ready."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from demo.probes import is_ready
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def server() -> Iterator[Callable[[int], int]]:
    """Return a function that starts a server whose answers have a status, and returns its port."""
    servers = []

    def start(status: int) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/readyz" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        started = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=started.serve_forever, daemon=True).start()
        servers.append(started)
        return started.server_port

    yield start
    for started in servers:
        started.shutdown()
        started.server_close()


def test_a_server_is_ready_when_it_says_so(server: Callable[[int], int]) -> None:
    assert is_ready(("127.0.0.1", server(200)), "/readyz")
    assert not is_ready(("127.0.0.1", server(503)), "/readyz")


def test_a_server_that_does_not_answer_is_not_ready() -> None:
    assert not is_ready(("127.0.0.1", free_port()), "/readyz")
