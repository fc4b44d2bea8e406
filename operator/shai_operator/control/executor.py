# SPDX-License-Identifier: BSD-2-Clause
"""Carries out the plans of reconciliations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.cluster import events
from shai_operator.reconcile import actions
from shai_operator.reconcile.objects import FINALIZER, PLURALS, finalizers, status, uid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Inventory, Object


class Executor:
    """Executes plans against the API server."""

    def __init__(self, cluster: Cluster, inventory: Inventory) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._applied: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._told: dict[str, tuple[str, ...]] = {}

    async def execute(self, plan: actions.Plan) -> float | None:
        """Carry out the actions in order; return the shortest time of a Requeue.

        The first action that fails stops the execution with `ClusterError`. Earlier actions remain done, and the next
        reconciliation continues from there.
        """
        wait: float | None = None
        for action in plan.actions:
            match action:
                case actions.Create():
                    self._note(await self._cluster.create(action.body))
                case actions.Delete():
                    await self._cluster.delete(action.target, action.uid)
                case actions.SetStatus():
                    await self._set_status(action)
                case actions.SetFinalizer():
                    if action.present != (FINALIZER in finalizers(action.obj)):
                        await self._cluster.set_finalizer(action.obj, present=action.present)
                case actions.SetAnnotation():
                    await self._cluster.set_annotation(action.obj, action.name, action.value)
                case actions.Emit():
                    await self._emit(action)
                case actions.Requeue():
                    wait = action.seconds if wait is None else min(wait, action.seconds)
        return wait

    def forget(self, obj: Object) -> None:
        """Forget an object that does not exist any more."""
        gone = uid(obj)
        self._told.pop(gone, None)
        for key in [key for key in self._applied if key[0] == gone]:
            del self._applied[key]

    async def _set_status(self, action: actions.SetStatus) -> None:
        key = uid(action.obj), action.writer
        if self._applied.get(key) == action.status and _holds(status(action.obj), action.status):
            return
        written = await self._cluster.apply_status(action.obj, action.writer, action.status)
        if written is not None:
            self._applied[key] = action.status
            self._note(written)

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
