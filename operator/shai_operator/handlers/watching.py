# SPDX-License-Identifier: BSD-2-Clause
"""Runs kopf's watches, whatever the API server answers.

kopf repeats requests that fail, and gives up when the API server refuses one, as it does while a kind's definition is
missing, or sends what nobody understands. kopf is then started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

import kopf

from shai_operator.control.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_LOGGER = logging.getLogger(__name__)

WATCH_SECONDS = 3600
"""A watch is renewed after this time, even if it seems to work."""
_INACTIVITY_SECONDS = 90
"""A watch that says nothing for so long is renewed: the API server sends a bookmark every minute."""
_CONNECT_SECONDS, _REQUEST_SECONDS = 10, 30
_EXIT_SECONDS = 0.1
"""How long kopf waits at the end for handlers of events that it has got. Who ends does not need these events."""
_WORKED_SECONDS = 60.0
"""Watches that have worked for so long are renewed at once."""


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False  # cluster/events.py records the events
    chosen.watching.server_timeout = WATCH_SECONDS
    chosen.watching.client_timeout = WATCH_SECONDS + 10
    chosen.watching.inactivity_timeout = _INACTIVITY_SECONDS
    chosen.networking.connect_timeout = _CONNECT_SECONDS
    chosen.networking.request_timeout = _REQUEST_SECONDS
    chosen.networking.error_backoffs = Backoff()
    chosen.queueing.exit_timeout = _EXIT_SECONDS
    chosen.scanning.disabled = False
    chosen.process.ultimate_exiting_timeout = None  # who runs this sets a limit
    return chosen


async def run(
    registry: kopf.OperatorRegistry,
    chosen: kopf.OperatorSettings,
    before: Callable[[], Awaitable[None]],
    started: Callable[[], None],
) -> None:
    """Watch until cancelled.

    ``before`` is awaited each time before kopf begins; ``started`` is called when kopf has taken the signals of the
    process for itself.
    """
    backoff = Backoff()
    while True:
        await before()
        since = time.monotonic()
        async with _kopf(registry, chosen) as tasks:
            started()
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        errors = [task.exception() for task in ended if not task.cancelled()]
        _LOGGER.warning("the watches have ended; watching again: %s", "; ".join(str(error) for error in errors))
        if time.monotonic() - since > _WORKED_SECONDS:
            backoff.reset()
        await backoff.wait()


@contextlib.asynccontextmanager
async def _kopf(
    registry: kopf.OperatorRegistry, chosen: kopf.OperatorSettings
) -> AsyncIterator[set[asyncio.Task[None]]]:
    """Run kopf's tasks. kopf's own function would cancel all tasks of the process at the end."""
    tasks = set(await kopf.spawn_tasks(registry=registry, settings=chosen, clusterwide=True, standalone=True))
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
