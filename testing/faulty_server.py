# SPDX-License-Identifier: BSD-2-Clause
"""An API server that fails: a proxy in front of the real one, which counts requests, and delays or answers them itself.

The operator speaks plain HTTP to it. `SilencingProxy` is for watches that die without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from testing.interposed import Interposed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

_LARGEST = 40 << 20
_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


async def passed_on(_: web.Request) -> None:
    """No fault."""


async def held(_: web.Request) -> None:
    """Never answer, as a half-open connection."""
    await asyncio.Event().wait()


def late(seconds: float) -> Fault:
    """Answer late."""

    async def fault(_: web.Request) -> None:
        await asyncio.sleep(seconds)

    return fault


def answered(status: int, **headers: str) -> Fault:
    """Answer with this status instead, in plain text, as a load balancer or an overloaded API server."""

    async def fault(_: web.Request) -> web.Response:
        return web.Response(
            status=status, text="not now", headers={key.replace("_", "-"): headers[key] for key in headers}
        )

    return fault


class FaultyServer(Interposed):
    """Runs in a thread of its own while entered."""

    def __init__(self, kubeconfig: Path, directory: Path, name: str = "faulty") -> None:
        super().__init__(kubeconfig, directory, name)
        self.fault: Fault = passed_on
        """What happens to requests, those that come from now on."""
        self.requests: Counter[tuple[str, str]] = Counter()
        """How often each method and path has been asked for; the method of watches is WATCH."""

    async def _serve(self) -> None:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
        ) as session:

            async def handle(request: web.Request) -> web.StreamResponse:
                method = "WATCH" if "watch" in request.query else request.method
                self.requests[method, request.path] += 1
                answer = await self.fault(request)
                return answer if answer is not None else await self._pass_on(session, request)

            application = web.Application(client_max_size=_LARGEST)
            application.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
            self._port = runner.addresses[0][1]
            self._started.set()
            await self._stop.wait()
            await runner.cleanup()
            await self._end_others()

    async def _pass_on(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        url = self._server + request.raw_path
        response = web.StreamResponse()
        try:
            async with session.request(
                request.method, url, data=await request.read() or None, headers=headers
            ) as answer:
                response = web.StreamResponse(
                    status=answer.status,
                    headers={name: value for name, value in answer.headers.items() if name.lower() not in _HOP},
                )
                await response.prepare(request)
                async for part in answer.content.iter_any():
                    await response.write(part)
                await response.write_eof()
        except (aiohttp.ClientError, ConnectionError):  # one of the two has gone
            with contextlib.suppress(AttributeError):
                request.transport.abort()  # type: ignore[union-attr]
        return response
