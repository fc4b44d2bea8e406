# SPDX-License-Identifier: BSD-2-Clause
"""Carries out the plans of reconciliations."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.cluster import events
from shai_operator.reconcile import actions, ownership, quiet
from shai_operator.reconcile.objects import FINALIZER, PLURALS, finalizers, status, uid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Inventory, Object


@dataclass(frozen=True)
class _Applied:
    """A part of a status as it was applied, and when, by the executor's clock."""

    status: Mapping[str, Any]
    at: float


class Executor:
    """Executes plans against the API server. ``clock`` counts seconds."""

    def __init__(self, cluster: Cluster, inventory: Inventory, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._clock = clock
        self._applied: dict[tuple[str, str], _Applied] = {}
        self._told: dict[str, tuple[str, ...]] = {}

    async def execute(self, plan: actions.Plan) -> float | None:
        """Carry out the actions in order; return when to reconcile again: the shortest time of a Requeue.

        A change of a status that is no news (`quiet.patience`) may be left for later; the time is then not longer.

        The first action that fails stops the execution with `ClusterError`. Earlier actions remain done, and the next
        reconciliation continues from there.
        """
        waits: list[float] = []
        for action in plan.actions:
            match action:
                case actions.Create():
                    self._note(await self._cluster.create(action.body))
                case actions.Delete():
                    await self._cluster.delete(action.target, action.uid)
                case actions.SetStatus():
                    waits += await self._set_status(action)
                case actions.SetFinalizer():
                    if action.present != (FINALIZER in finalizers(action.obj)):
                        await self._cluster.set_finalizer(action.obj, present=action.present)
                case actions.SetAnnotation():
                    await self._cluster.set_annotation(action.obj, action.name, action.value)
                case actions.Emit():
                    await self._emit(action)
                case actions.Requeue():
                    waits.append(action.seconds)
        return min(waits, default=None)

    def forget(self, obj: Object) -> None:
        """Forget an object that does not exist any more."""
        gone = uid(obj)
        self._told.pop(gone, None)
        for key in [key for key in self._applied if key[0] == gone]:
            del self._applied[key]

    async def _set_status(self, action: actions.SetStatus) -> tuple[float, ...]:
        """Apply a part of a status; return in how many seconds to do it if it is not done now."""
        key = uid(action.obj), action.writer
        known = self._applied.get(key)
        if known is None and ownership.settled(action.obj, action.writer, action.status):
            known = self._applied[key] = _Applied(action.status, self._clock())
        if known is not None and _holds(status(action.obj), known.status):
            patience = quiet.patience(action.obj["kind"], known.status, action.status)
            if patience is None:
                return ()
            left = known.at + patience - self._clock()
            if left > 0:
                return (left,)
        written = await self._cluster.apply_status(action.obj, action.writer, action.status)
        if written is not None:
            self._applied[key] = _Applied(action.status, self._clock())
            self._note(written)
        return ()

    def _note(self, written: Object | None) -> None:
        """Store a written object before its watch delivers it: the next reconciliation decides on it."""
        if written is not None and written["kind"] in PLURALS:
            self._inventory.put(written)

    async def _emit(self, action: actions.Emit) -> None:
        # Reconciliations repeat, so an event is recorded again only after a different one.
        event = action.type, action.reason, action.message
        if self._told.get(uid(action.obj)) == event:
            return
        self._told[uid(action.obj)] = event
        await events.record(self._cluster, action)


def _holds(seen: Any, wanted: Any) -> bool:
    """Whether an observed value contains the wanted one; conditions of other writers may be present, too."""
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(key in seen and _holds(seen[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and wanted and all(isinstance(entry, dict) and "type" in entry for entry in wanted):
        known = {entry.get("type"): entry for entry in seen or () if isinstance(entry, dict)}
        return all(_holds(known.get(entry["type"]), entry) for entry in wanted)
    return bool(seen == wanted)
