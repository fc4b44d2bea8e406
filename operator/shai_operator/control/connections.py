# SPDX-License-Identifier: BSD-2-Clause
"""Serves an application to anybody who can connect, without running out of descriptors.

Connections are limited. One without a request is closed after a while, and at once when another wants its place, the
oldest first, unless it has only just come. A request is never put aside for another: what arrives when all places are
taken by requests waits, and each of these places is free after an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterable

    from aiohttp.typedefs import Handler
    from prometheus_client import Counter

    _Connection = web.RequestHandler

MOST = 256
"""How many connections there are at the same time."""
_IDLE_SECONDS = 5.0
"""How long a connection may have no whole request."""
_HEARD_SECONDS = 0.25
"""How long it is left alone even if another wants its place: what it has sent has not been read yet."""
_LOOK_SECONDS = 1.0
_BACKLOG = 128
_ANSWER_SECONDS = 10.0
"""At the end, how long those who are connected may still ask and be answered."""
_LOGGER = logging.getLogger(__name__)


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen at an address; OSError when nothing can listen there. Who calls this closes the sockets."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    with contextlib.ExitStack() as stack:
        listening = [
            stack.enter_context(socket.create_server(address, family=family, backlog=_BACKLOG))
            for family, address in dict.fromkeys((one[0], one[4]) for one in found)
        ]
        stack.pop_all()
    return listening


class Connections:
    """The connections to an application. One object serves one application, in the event loop.

    ``rejected`` counts those that gave way to others. ``tls`` returns the context for a new connection; None: there is
    no TLS. ``once``: a connection is closed after one answer.
    """

    def __init__(
        self,
        application: web.Application,
        rejected: Counter,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        once: bool = False,
    ) -> None:
        application.middlewares.append(self._served)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_ANSWER_SECONDS)
        self._rejected = rejected
        self._tls = tls
        self._once = once
        self._joining: dict[asyncio.Task[None], float] = {}
        """Those in their TLS handshake, and since when."""
        self._asking: set[object] = set()
        """Those with a request that is being answered."""
        self._since: dict[_Connection, float] = {}
        """Since when each has had no request."""
        self._new: set[object] = set()
        """Those that have not asked for anything yet."""
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def serve(self, listening: Iterable[socket.socket]) -> AsyncIterator[None]:
        """Accept connections while the context lasts; then close the sockets, and answer those who are connected."""
        await self._runner.setup()
        idle, accepting = asyncio.create_task(self._close_idle(), name="idle"), list[asyncio.Task[None]]()
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(one) for one in listening]
            try:
                for one in sockets:
                    one.settimeout(0)
                    accepting.append(asyncio.create_task(self._accept(one), name="accept"))
                yield
            finally:
                await _cancelled(*accepting)
                for one in sockets:
                    with contextlib.suppress(OSError):  # nobody else waits
                        while True:
                            self._admit_next(one)
                stack.close()
                await self._answer_last()
                await _cancelled(idle, *self._joining)
                await self._runner.cleanup()

    async def _answer_last(self) -> None:
        """Answer each of those once who are connected and have had no answer: there is nobody else for them to ask."""
        self._once = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                while self._joining or not self._new.isdisjoint(self._open()):
                    self._answered.clear()
                    await self._answered.wait()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                await _readable(listening)
                await self._room()
                self._admit_next(listening)
            except BlockingIOError:  # another process with this socket was faster
                continue
            except OSError as error:  # no descriptors or memory, or the client has gone already
                _LOGGER.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(_LOOK_SECONDS)

    def _admit_next(self, listening: socket.socket) -> None:
        """Accept who has waited longest; OSError when nobody waits. Without a pause, in which it would be lost."""
        accepted, _ = listening.accept()
        joining = asyncio.create_task(self._admit(accepted), name="handshake")
        self._joining[joining] = time.monotonic()
        joining.add_done_callback(self._joined)

    def _joined(self, task: asyncio.Task[None]) -> None:
        self._joining.pop(task, None)
        self._answered.set()
        if not task.cancelled() and task.exception() is not None:
            _LOGGER.debug("a connection has failed: %s", task.exception())

    async def _admit(self, accepted: socket.socket) -> None:
        with contextlib.ExitStack() as closing:
            closing.callback(accepted.close)
            server = self._runner.server
            if server is not None:
                context = self._tls() if self._tls is not None else None
                limit = _IDLE_SECONDS if context is not None else None
                _, connection = await asyncio.get_running_loop().connect_accepted_socket(
                    server, accepted, ssl=context, ssl_handshake_timeout=limit
                )
                closing.pop_all()
                self._since[connection] = time.monotonic()
                self._new.add(connection)

    async def _room(self) -> None:
        """Wait until another connection has room."""
        while len(self._open()) + len(self._joining) >= MOST:
            close, since = self._idlest()
            early = since + _HEARD_SECONDS - time.monotonic()
            if close is not None and early <= 0:
                self._rejected.inc()
                close()
                await asyncio.sleep(0)  # it is forgotten in the next round of the loop
            else:
                self._answered.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if close is None else early):
                        await self._answered.wait()

    def _idlest(self) -> tuple[Callable[[], object] | None, float]:
        """Return what closes the connection that has had no request for longest, and since when; None if all ask."""
        now = time.monotonic()
        idle: list[tuple[float, Callable[[], object]]] = [
            (self._since.get(one, now), functools.partial(_abort, one))
            for one in self._open()
            if one not in self._asking
        ]
        idle += [(since, task.cancel) for task, since in self._joining.items() if not task.cancelling()]
        since, close = min(idle, key=lambda one: one[0], default=(0.0, None))
        return close, since

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            self._since = {connection: self._since.get(connection, now) for connection in self._open()}
            for connection, since in self._since.items():
                if connection not in self._asking and now - since >= _IDLE_SECONDS:
                    _abort(connection)
            self._new.intersection_update(self._since)
            self._answered.set()  # some have gone by themselves

    def _open(self) -> list[_Connection]:
        return self._runner.server.connections if self._runner.server is not None else []

    @web.middleware
    async def _served(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._asking.add(request.protocol)
        self._new.discard(request.protocol)
        try:
            response = await handler(request)
            if self._once or len(self._open()) >= MOST:
                response.force_close()  # whatever else it asks, others may wait
                request.task.add_done_callback(lambda _: self._answered.set())
            return response
        finally:
            self._asking.discard(request.protocol)
            self._since[request.protocol] = time.monotonic()
            self._answered.set()


async def _readable(listening: socket.socket) -> None:
    """Wait until somebody connects."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(listening, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(listening)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _abort(connection: _Connection) -> None:
    if connection.transport is not None:
        connection.transport.abort()
