# SPDX-License-Identifier: BSD-2-Clause
"""The work queue: the objects to reconcile, each by one worker at a time.

If an object is added many times before it is reconciled, it is reconciled once. If it is added while it is being
reconciled, it is reconciled once more. A failed reconciliation is repeated with growing delays. This is the contract of
client-go's workqueue, for asyncio. Call all methods from the event loop.

Namespaces take turns, so that thousands of objects of one do not delay those of others.

An object whose reconciliation kept the event loop for long rests afterwards for some times as long. Of a pool with
thousands of policies, each of which is an event, no more than a part of the time is spent on the pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ConflictError
from shai_operator.control.busy import Busy
from shai_operator.metrics.counted import QUEUE_DEPTH, RECONCILE_ERRORS, RECONCILE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from shai_operator.reconcile.objects import Reference

_LOGGER = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 60.0
REST = 4
"""An object rests for so many times as long as its reconciliation kept the event loop."""
_LEAST_REST_SECONDS = 0.05
"""Shorter rests save nothing."""


class _Turns:
    """The references that wait for a worker: one of each namespace, then the next of each."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Reference]] = {}
        """By namespace, the one whose turn is next first. None is empty."""
        self._number = asyncio.Semaphore(0)

    def put(self, ref: Reference) -> None:
        self._waiting.setdefault(ref.namespace, deque()).append(ref)
        self._number.release()

    async def get(self) -> Reference:
        await self._number.acquire()
        space = next(iter(self._waiting))
        waiting = self._waiting.pop(space)
        ref = waiting.popleft()
        if waiting:
            self._waiting[space] = waiting
        return ref


class WorkQueue:
    """Runs ``reconcile`` for each added object, on a fixed number of workers.

    ``reconcile`` returns the seconds after which it wants to be called again, or None.
    """

    def __init__(self, reconcile: Callable[[Reference], Coroutine[Any, Any, float | None]], workers: int) -> None:
        self._reconcile = reconcile
        self._workers = workers
        self._ready = _Turns()
        self._waiting: set[Reference] = set()  # in _ready
        self._running: set[Reference] = set()
        self._again: set[Reference] = set()  # added while running or resting
        self._resting: dict[Reference, asyncio.TimerHandle] = {}
        self._timers: dict[Reference, asyncio.TimerHandle] = {}
        self._failures: dict[Reference, int] = {}

    def add(self, ref: Reference) -> None:
        """Reconcile an object as soon as it has rested and a worker is free."""
        self._cancel_timer(ref)
        if ref in self._running or ref in self._resting:
            self._again.add(ref)
        elif ref not in self._waiting:
            self._waiting.add(ref)
            self._ready.put(ref)
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
            for timers in (self._timers, self._resting):
                for timer in timers.values():
                    timer.cancel()
                timers.clear()

    async def _work(self) -> None:
        while True:
            ref = await self._ready.get()
            self._waiting.discard(ref)
            self._running.add(ref)
            QUEUE_DEPTH.set(len(self._waiting))
            try:
                kept = await self._look(ref)
            finally:
                self._running.discard(ref)
            if kept * REST >= _LEAST_REST_SECONDS:
                self._resting[ref] = asyncio.get_running_loop().call_later(kept * REST, self._rested, ref)
            else:
                self._once_more(ref)

    def _rested(self, ref: Reference) -> None:
        del self._resting[ref]
        self._once_more(ref)

    def _once_more(self, ref: Reference) -> None:
        if ref in self._again:
            self._again.discard(ref)
            self.add(ref)

    async def _look(self, ref: Reference) -> float:
        """Reconcile an object; return for how many seconds this kept the event loop."""
        started = time.monotonic()
        work = Busy(self._reconcile(ref))
        try:
            seconds = await work
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
        return work.seconds

    def _delay(self, ref: Reference) -> float:
        failures = self._failures[ref] = self._failures.get(ref, 0) + 1
        longest = min(FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 20), LAST_RETRY_SECONDS)
        return longest * random.uniform(0.75, 1.0)  # noqa: S311 - spreads retries, is no secret

    def _cancel_timer(self, ref: Reference) -> None:
        with contextlib.suppress(KeyError):
            self._timers.pop(ref).cancel()
