# SPDX-License-Identifier: BSD-2-Clause
"""A real server in the place of a member's monitor, and who observes it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from aiohttp import web

from shai_operator.control.member_observer import MemberObserver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from shai_operator.control.authority import ClientTLS
    from shai_operator.monitors.client import MonitorClient


class Observer(MemberObserver):
    """Observes a member whose monitor listens on a socket."""

    def __init__(self, client: MonitorClient) -> None:
        super().__init__(cast("ClientTLS", None), lambda: None)
        self._monitor = client

    def client(self, name: str) -> MonitorClient:
        del name
        return self._monitor


@asynccontextmanager
async def listening(
    socket: Path, routes: Mapping[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]
) -> AsyncIterator[None]:
    """Answer requests on a unix socket."""
    application = web.Application()
    for path, handler in routes.items():
        application.router.add_route("*", path, handler)
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    try:
        yield
    finally:
        await runner.cleanup()
