# SPDX-License-Identifier: BSD-2-Clause
"""A real server in the place of a member's monitor."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path


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
