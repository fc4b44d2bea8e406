# SPDX-License-Identifier: BSD-2-Clause
"""The objects that a pipeline names, and its mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import namespace, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shai_operator.reconcile.objects import Inventory, Object

DEFAULT_POOL, DEFAULT_MODE = "default", "shai"


def pool(pipeline: Object) -> str:
    """Return the name of the pool that runs a pipeline."""
    return str(spec(pipeline).get("pool") or DEFAULT_POOL)


def mode(pipeline: Object) -> str:
    """Return the mode in which a pipeline is to run."""
    return str(spec(pipeline).get("mode") or DEFAULT_MODE)


def tasks(pipeline: Object) -> tuple[str, ...]:
    """Return the names of a pipeline's tasks, in the order in which they are started."""
    return tuple(spec(pipeline).get("tasks") or ())


def policies(pipeline: Object, inventory: Inventory) -> tuple[str, ...]:
    """Return the names of the policies on a pipeline's conduits and its tasks' taints, sorted."""
    found = {_policy(conduit) for conduit in spec(pipeline).get("conduits") or ()}
    for conduit in spec(pipeline).get("conduits") or ():
        found.update(_policy(path) for path in conduit.get("paths") or ())
    for task in existing_tasks(pipeline, inventory):
        found.add((spec(task).get("taint") or {}).get("name", ""))
    return tuple(sorted(found - {""}))


def _policy(holder: Mapping[str, Any]) -> str:
    return str((holder.get("policy") or {}).get("name", ""))


def existing_tasks(pipeline: Object, inventory: Inventory) -> Iterator[Object]:
    """Yield those of a pipeline's tasks that exist."""
    for task in tasks(pipeline):
        found = inventory.find("Task", namespace(pipeline), task)
        if found is not None:
            yield found
