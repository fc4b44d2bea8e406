# SPDX-License-Identifier: BSD-2-Clause
"""Probes, metrics and their targets over HTTP: ``/healthz``, ``/readyz``, ``/metrics``, ``/targets``."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from shai_operator.control.connections import Connections
from shai_operator.control.settings import SettingsError
from shai_operator.metrics.targets import MONITOR_JOB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from shai_operator.control.freshness import Freshness
    from shai_operator.control.scrapes import Scrapes
    from shai_operator.control.scraping import Scraping

_PULSE_SECONDS = 1.0
_STALL_LIMIT_SECONDS = 10.0
_UNAVAILABLE, _NOT_FOUND = 503, 404


class Health:
    """The state that the probes report, and what is served beside them."""

    def __init__(
        self,
        freshness: Freshness,
        ready: asyncio.Event,
        lag_limit_seconds: float,
        *,
        scrapes: Scrapes,
        scraping: Scraping,
    ) -> None:
        self._freshness = freshness
        self._lag_limit = lag_limit_seconds
        self._ready = ready
        self._scrapes = scrapes
        self._scraping = scraping
        self._beat = time.monotonic()

    @asynccontextmanager
    async def serve(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve while the context lasts; yields the port (useful when ``port`` is 0)."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._scrapes.answer),
                web.get("/targets", self._targets),
            ]
        )
        async with AsyncExitStack() as stack:
            try:
                served = await stack.enter_async_context(Connections(application).serve(host, port))
            except OSError as error:
                raise SettingsError(
                    f"cannot serve probes at {host}:{port}: {os.strerror(error.errno or 0)}; end what listens there "
                    "(another operator?), or choose another address (--probes)"
                ) from error
            yield served

    async def pulse(self) -> None:
        """Record that the event loop still runs, until cancelled."""
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(_PULSE_SECONDS)

    async def _healthz(self, _: web.Request) -> web.Response:
        lag, kind = self._freshness.lag()
        if lag > self._lag_limit:
            return web.Response(status=_UNAVAILABLE, text=f"the watch of {kind} is {lag:.0f} s behind\n")
        stalled = time.monotonic() - self._beat
        if stalled > _STALL_LIMIT_SECONDS:
            return web.Response(status=_UNAVAILABLE, text=f"the event loop stood still for {stalled:.0f} s\n")
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if not self._ready.is_set():
            return web.Response(status=_UNAVAILABLE, text="the API server has not yet been told to ask for admission\n")
        return web.Response(text="ready\n")

    async def _targets(self, request: web.Request) -> web.Response:
        """Answer Prometheus' service discovery by HTTP, which keeps its targets when the answer is an error."""
        job = request.query.get("job")
        if job != MONITOR_JOB:
            return web.Response(status=_NOT_FOUND, text=f"ask for /targets?job={MONITOR_JOB}\n")
        found = self._scraping.members()
        if found is None:
            return web.Response(status=_UNAVAILABLE, text="the pools are not known yet; try again\n")
        return web.json_response(found)
