# SPDX-License-Identifier: BSD-2-Clause
"""The work queue: the objects to reconcile, each by one worker at a time.

If an object is added many times before it is reconciled, it is reconciled once. If it is added while it is being
reconciled, it is reconciled once more. A failed reconciliation is repeated with growing delays. This is the contract of
client-go's workqueue, for asyncio. Call all methods from the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ConflictError
from shai_operator.metrics.counted import QUEUE_DEPTH, RECONCILE_ERRORS, RECONCILE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from shai_operator.reconcile.objects import Reference

_LOGGER = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 60.0


class WorkQueue:
    """Runs ``reconcile`` for each added object, on a fixed number of workers.

    ``reconcile`` returns the seconds after which it wants to be called again, or None.
    """

    def __init__(self, reconcile: Callable[[Reference], Awaitable[float | None]], workers: int) -> None:
        self._reconcile = reconcile
        self._workers = workers
        self._ready: asyncio.Queue[Reference] = asyncio.Queue()
        self._waiting: set[Reference] = set()  # in _ready
        self._running: set[Reference] = set()
        self._again: set[Reference] = set()  # added while running
        self._timers: dict[Reference, asyncio.TimerHandle] = {}
        self._failures: dict[Reference, int] = {}

    def add(self, ref: Reference) -> None:
        """Reconcile an object as soon as a worker is free."""
        self._cancel_timer(ref)
        if ref in self._running:
            self._again.add(ref)
        elif ref not in self._waiting:
            self._waiting.add(ref)
            self._ready.put_nowait(ref)
            QUEUE_DEPTH.set(len(self._waiting))

    def add_after(self, ref: Reference, seconds: float) -> None:
        """Reconcile an object after a delay; of several delays, the one that ends first counts."""
        timer = self._timers.get(ref)
        loop = asyncio.get_running_loop()
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        self._cancel_timer(ref)
        self._timers[ref] = loop.call_later(seconds, self.add, ref)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._workers):
                    workers.create_task(self._work())
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    async def _work(self) -> None:
        while True:
            ref = await self._ready.get()
            self._waiting.discard(ref)
            self._running.add(ref)
            QUEUE_DEPTH.set(len(self._waiting))
            try:
                await self._look(ref)
            finally:
                self._running.discard(ref)
            if ref in self._again:
                self._again.discard(ref)
                self.add(ref)

    async def _look(self, ref: Reference) -> None:
        started = time.monotonic()
        try:
            seconds = await self._reconcile(ref)
        except ConflictError as error:  # it was decided on an object that had changed since; the change is on its way
            delay = self._delay(ref)
            _LOGGER.info("reconcile %s: %s; again in %.1f s", ref, error, delay, extra={"object": str(ref)})
            self.add_after(ref, delay)
        except Exception:  # the failure of one object must not stop the others: it is logged, counted and repeated
            delay = self._delay(ref)
            RECONCILE_ERRORS.labels(ref.kind).inc()
            _LOGGER.exception("reconcile %s failed; again in %.1f s", ref, delay, extra={"object": str(ref)})
            self.add_after(ref, delay)
        else:
            self._failures.pop(ref, None)
            if seconds is not None:
                self.add_after(ref, seconds)
        finally:
            RECONCILE_SECONDS.labels(ref.kind).observe(time.monotonic() - started)

    def _delay(self, ref: Reference) -> float:
        failures = self._failures[ref] = self._failures.get(ref, 0) + 1
        longest = min(FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 20), LAST_RETRY_SECONDS)
        return longest * random.uniform(0.75, 1.0)  # noqa: S311 - spreads retries, is no secret

    def _cancel_timer(self, ref: Reference) -> None:
        with contextlib.suppress(KeyError):
            self._timers.pop(ref).cancel()
