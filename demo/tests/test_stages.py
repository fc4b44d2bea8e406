# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the demo that need no cluster."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from demo import stages
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def probes() -> Iterator[Callable[[int], int]]:
    """Return a function that starts a server whose answers have a status, and returns its port."""
    servers = []

    def start(status: int) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/readyz" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_operator_is_ready_when_it_says_so(probes: Callable[[int], int]) -> None:
    assert stages.is_ready(probes(200))
    assert not stages.is_ready(probes(503))


def test_an_operator_that_does_not_answer_is_not_ready() -> None:
    assert not stages.is_ready(free_port())
