# SPDX-License-Identifier: BSD-2-Clause
"""Serves an application to anybody who can connect, without running out of descriptors.

Connections are limited. One without a request is closed after a while, and at once when another wants its place, the
oldest first, unless it has only just come. A request is never put aside for another: what arrives when all places are
taken by requests waits, and each of these places is free after an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from shai_operator.metrics.counted import SCRAPES_REJECTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp.typedefs import Handler

    _Connection = web.RequestHandler

MOST = 256
"""How many connections there are at the same time."""
_IDLE_SECONDS = 5.0
"""How long a connection may have no whole request."""
_HEARD_SECONDS = 0.25
"""How long it is left alone even if another wants its place: what it has sent has not been read yet."""
_LOOK_SECONDS = 1.0
_LOGGER = logging.getLogger(__name__)


class Connections:
    """The connections to an application. One object serves one application, in the event loop."""

    def __init__(self, application: web.Application) -> None:
        application.middlewares.append(self._served)
        self._runner = web.AppRunner(application, access_log=None)
        self._asking: set[object] = set()
        """Those with a request that is being answered."""
        self._since: dict[_Connection, float] = {}
        """Since when each has had no request."""
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def serve(self, host: str, port: int) -> AsyncIterator[int]:
        """Accept connections while the context lasts; yields the port. OSError when nothing can listen there."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        await self._runner.setup()
        with contextlib.ExitStack() as stack:
            tasks = []
            try:
                for family, address in dict.fromkeys((one[0], one[4]) for one in found):
                    listening = socket.create_server(address, family=family, backlog=128)
                    stack.enter_context(listening)
                    listening.settimeout(0)
                    port = listening.getsockname()[1]
                    tasks.append(asyncio.create_task(self._accept(listening), name="accept"))
                tasks.append(asyncio.create_task(self._close_idle(), name="idle"))
                yield port
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._runner.cleanup()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
                await self._admit(accepted)
            except OSError as error:  # no descriptors or memory, or the client has gone already
                _LOGGER.warning("cannot accept a connection to probes and metrics: %s", error)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _admit(self, accepted: socket.socket) -> None:
        with contextlib.ExitStack() as closing:
            closing.callback(accepted.close)
            await self._room()
            server = self._runner.server
            if server is not None:
                _, connection = await asyncio.get_running_loop().connect_accepted_socket(server, accepted)
                closing.pop_all()
                self._since[connection] = time.monotonic()

    async def _room(self) -> None:
        """Wait until another connection has room."""
        while len(self._open()) >= MOST:
            idle = [connection for connection in self._open() if connection not in self._asking]
            oldest = min(idle, key=lambda connection: self._since.get(connection, 0.0), default=None)
            early = self._since.get(oldest, 0.0) + _HEARD_SECONDS - time.monotonic() if oldest is not None else None
            if oldest is not None and early is not None and early <= 0:
                SCRAPES_REJECTED.inc()
                _abort(oldest)
                await asyncio.sleep(0)  # it is forgotten in the next round of the loop
            else:
                self._answered.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._answered.wait(), early)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            self._since = {connection: self._since.get(connection, now) for connection in self._open()}
            for connection, since in self._since.items():
                if connection not in self._asking and now - since >= _IDLE_SECONDS:
                    _abort(connection)

    def _open(self) -> list[_Connection]:
        return self._runner.server.connections if self._runner.server is not None else []

    @web.middleware
    async def _served(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._asking.add(request.protocol)
        try:
            response = await handler(request)
            if len(self._open()) >= MOST:
                response.force_close()  # whatever else it asks, others may wait
            return response
        finally:
            self._asking.discard(request.protocol)
            self._since[request.protocol] = time.monotonic()
            self._answered.set()


def _abort(connection: _Connection) -> None:
    if connection.transport is not None:
        connection.transport.abort()
