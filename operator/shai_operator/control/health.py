# SPDX-License-Identifier: BSD-2-Clause
"""Probes, metrics and their targets over HTTP: ``/healthz``, ``/readyz``, ``/metrics``, ``/targets``."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from shai_operator.cluster.client import ClusterError
from shai_operator.control.connections import Connections, listen
from shai_operator.control.scrapes import Scrapes
from shai_operator.control.settings import SettingsError
from shai_operator.metrics.counted import LEADING, QUEUE_DEPTH, SCRAPES_REJECTED, WATCH_LAG
from shai_operator.metrics.samples import Snapshot
from shai_operator.metrics.targets import MONITOR_JOB
from shai_operator.reconcile.objects import PLURALS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from shai_operator.control.freshness import Freshness
    from shai_operator.control.scraping import Scraping, StandbyTargets

_PULSE_SECONDS = 1.0
_STALL_LIMIT_SECONDS = 10.0
_UNAVAILABLE, _NOT_FOUND = 503, 404


@dataclass(frozen=True)
class Leading:
    """What a replica knows because it leads."""

    freshness: Freshness
    scraping: Scraping
    snapshot: Callable[[], Snapshot]


class Health:
    """The state that the probes report, and what is served beside them."""

    def __init__(self, lag_limit_seconds: float, version: str, standby: StandbyTargets) -> None:
        self.waiting = "it has just begun"
        """For what this replica waits before it can answer the API server; empty: it is ready."""
        self._lag_limit = lag_limit_seconds
        self._version = version
        self._standby = standby
        self._scrapes = Scrapes(self._snapshot)
        self._leading: Leading | None = None
        self._beat = time.monotonic()
        LEADING.set(0)

    @contextmanager
    def lead(self, leading: Leading) -> Iterator[None]:
        """Report what a leader knows, while the context lasts."""
        self._leading = leading
        LEADING.set(1)
        try:
            yield
        finally:
            self._leading = None
            LEADING.set(0)
            WATCH_LAG.clear()
            QUEUE_DEPTH.set(0)

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
        try:
            listening = await asyncio.to_thread(listen, host, port)
        except OSError as error:
            raise SettingsError(
                f"cannot serve probes at {host}:{port}: {os.strerror(error.errno or 0)}; end what listens there, or "
                "choose another address (--probes): each replica on a machine needs one of its own"
            ) from error
        port = listening[0].getsockname()[1]
        async with Connections(application, SCRAPES_REJECTED).serve(listening):
            yield port

    def _snapshot(self) -> Snapshot:
        if self._leading is not None:
            return self._leading.snapshot()
        return Snapshot(objects=dict.fromkeys(PLURALS, ()), version=self._version)

    async def pulse(self) -> None:
        """Record that the event loop still runs, until cancelled."""
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(_PULSE_SECONDS)

    async def _healthz(self, _: web.Request) -> web.Response:
        lag, kind = self._leading.freshness.lag() if self._leading is not None else (0.0, "")
        if lag > self._lag_limit:
            return web.Response(status=_UNAVAILABLE, text=f"the watch of {kind} is {lag:.0f} s behind\n")
        stalled = time.monotonic() - self._beat
        if stalled > _STALL_LIMIT_SECONDS:
            return web.Response(status=_UNAVAILABLE, text=f"the event loop stood still for {stalled:.0f} s\n")
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.waiting:
            return web.Response(status=_UNAVAILABLE, text=f"not ready yet: {self.waiting}\n")
        return web.Response(text="ready\n")

    async def _targets(self, request: web.Request) -> web.Response:
        """Answer Prometheus' service discovery by HTTP, which keeps its targets when the answer is an error."""
        job = request.query.get("job")
        if job != MONITOR_JOB:
            return web.Response(status=_NOT_FOUND, text=f"ask for /targets?job={MONITOR_JOB}\n")
        found: Sequence[dict[str, Any]] | None
        try:
            leading = self._leading
            found = leading.scraping.members() if leading is not None else await self._standby.members()
        except ClusterError:
            found = None
        if found is None:
            return web.Response(status=_UNAVAILABLE, text="the pools are not known yet; try again\n")
        return web.json_response(found)
