# SPDX-License-Identifier: BSD-2-Clause
"""Connects watch, queue and controllers.

When an object is seen, it goes into the inventory and into the queue, together with the objects whose state depends on
it. The controller of each kind then reconciles the object in its current state.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from shai_operator.control.queue import WorkQueue
from shai_operator.reconcile import dependents
from shai_operator.reconcile.objects import Inventory, Reference, reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.executor import Executor
    from shai_operator.reconcile.objects import Object

WORKERS = 8


class Controller(Protocol):
    """Reconciles the objects of one kind."""

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one object, which may not exist any more; return the seconds until the next time, or None."""


class Loop:
    """Puts changed objects into the inventory and the queue. ``controllers`` are by kind, and set before `run`."""

    def __init__(self, inventory: Inventory, executor: Executor) -> None:
        self.inventory = inventory
        self.controllers: Mapping[str, Controller] = {}
        self.queue = WorkQueue(self._reconcile, WORKERS)
        self.seen = time.monotonic()
        """When the last event arrived."""
        self.heard: dict[Reference, int] = {}
        """The version of each object that its watch delivered last."""
        self.redefined: dict[str, float] = {}
        """By namespace: when one of its definitions was last created, changed or deleted."""
        self._executor = executor
        self._observed: dict[Reference, Object] = {}
        """What was seen last. The inventory may have what the operator itself has written since."""

    def know(self, obj: Object) -> None:
        """Put an object into the inventory without reconciling it."""
        if self.inventory.get(reference(obj)) is None:
            self.inventory.put(obj)

    def observe(self, obj: Object, *, gone: bool = False) -> None:
        """Take an object from its watch: its present state, or its last one when it was deleted."""
        if gone:
            self.heard.pop(reference(obj), None)
        else:
            self.heard[reference(obj)] = int(obj["metadata"]["resourceVersion"])
        self.take(obj, gone=gone)

    def take(self, obj: Object, *, gone: bool = False) -> None:
        """Take an object from any source."""
        self.seen = time.monotonic()
        ref = reference(obj)
        before = self._observed.get(ref)
        if gone:
            before = None  # when an object is deleted, the same objects depend on it as when it is created
            self._observed.pop(ref, None)
            self.inventory.remove(ref)
            self._executor.forget(obj)
        else:
            self._observed[ref] = obj
            self.inventory.put(obj)
        self.queue.add(ref)
        for dependent in dependents.of(obj, before, self.inventory):
            if dependent.kind == dependents.DEFINITIONS:
                self.redefined[dependent.name] = self.seen
            self.queue.add(dependent)

    async def run(self) -> None:
        """Work until cancelled."""
        await self.queue.run()

    async def _reconcile(self, ref: Reference) -> float | None:
        controller = self.controllers.get(ref.kind)
        return None if controller is None else await controller.reconcile(ref)
