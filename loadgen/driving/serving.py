# SPDX-License-Identifier: BSD-2-Clause
"""Serves HTTP on loopback, where any user of the machine can connect.

So no more than a number of connections are there at the same time, of which none can keep its place: the process needs
its descriptors for the load.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, Literal

import gevent
from gevent import monkey
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import WSGIEnvironment

CONNECTIONS = 64
"""How many there are at the same time; when all have requests, others wait."""
_REQUEST_SECONDS = 5.0
"""How long a connection may take for a request and its answer."""
_LIMIT = "shai.limit"
_PlainSocket = monkey.get_original("socket", "socket")


class _Server(WSGIServer):
    """Keeps a place for who comes next while a connection has no request."""

    max_accept = 1  # who has just come is heard before others come

    def __init__(self, listener: socket.socket | tuple[str, int], application: Callable[..., Iterable[bytes]]) -> None:
        self._places = Pool(CONNECTIONS)
        self._silent: dict[_Handler, None] = {}
        """Those without a whole request, the oldest first."""
        super().__init__(listener, application, spawn=self._places, log=None, error_log=None, handler_class=_Handler)

    def listen_to(self, handler: _Handler) -> None:
        """Wait for a request, at the cost of who has waited longest if all places are taken."""
        self._silent[handler] = None
        oldest = next(iter(self._silent))
        if self._places.full() and oldest is not handler:
            self.heard(oldest)
            oldest.hang_up()

    def heard(self, handler: _Handler) -> None:
        """Its request has come, or none comes."""
        self._silent.pop(handler, None)


class _Handler(WSGIHandler):
    """Closes connections that do not use their place."""

    server: _Server

    def handle(self) -> None:
        """Serve a connection to its end. That a client hears no answer is no news: gevent would print a trace."""
        with contextlib.suppress(OSError):
            super().handle()

    def handle_one_request(self) -> tuple[str, bytes] | Literal[True] | None:
        """Serve one request, unless the client is too slow; anything but True closes the connection."""
        # An exception would not do: gevent catches it, and answers, for which the client can take its time.
        self._limit = gevent.spawn_later(_REQUEST_SECONDS, self.hang_up)
        self.server.listen_to(self)
        try:
            return super().handle_one_request()
        finally:
            self.server.heard(self)
            self._limit.kill(block=False)

    def handle_one_response(self) -> None:
        """Answer a request."""
        self.server.heard(self)
        super().handle_one_response()

    def get_environ(self) -> dict[str, Any]:
        """Return what the application knows of the request."""
        return {**super().get_environ(), _LIMIT: self._limit}

    def hang_up(self) -> None:
        """End the connection, whatever it is about."""
        # gevent's own shutdown raises an exception in whoever reads or writes.
        plain = _PlainSocket(fileno=self.socket.fileno())
        try:
            with contextlib.suppress(OSError):  # the client may have been faster
                plain.shutdown(socket.SHUT_RDWR)
        finally:
            plain.detach()


def server(listener: socket.socket | tuple[str, int], application: Callable[..., Iterable[bytes]]) -> WSGIServer:
    """Return a server of an application; it has to be started."""
    return _Server(listener, application)


def take_time(environ: WSGIEnvironment | Mapping[str, Any]) -> None:
    """Let a request that is known to be welcome take the time that it needs."""
    environ[_LIMIT].kill(block=False)
