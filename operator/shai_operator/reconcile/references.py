# SPDX-License-Identifier: BSD-2-Clause
"""The objects that a pipeline names, and its mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import namespace, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shai_operator.reconcile.objects import Inventory, Object

DEFAULT_POOL, DEFAULT_MODE = "default", "shai"
_LIBRARY = "library/"
"""What the names of the standard library's policies begin with. The name of no object has a slash."""


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
    """Return the names of the Policies on a pipeline's conduits, among their choices, and on its tasks' taints, sorted.

    A monitor takes a pipeline only with all of them. Those of the standard library are no objects: each monitor has
    them.
    """
    return tuple(sorted(inventory.derived(pipeline, _of_conduits) | set(_of_taints(pipeline, inventory))))


def names_policy(pipeline: Object, policy: str, inventory: Inventory) -> bool:
    """Whether a policy is among `policies`."""
    return policy in inventory.derived(pipeline, _of_conduits) or policy in _of_taints(pipeline, inventory)


def _of_conduits(pipeline: Object) -> frozenset[str]:
    conduits = spec(pipeline).get("conduits") or ()
    paths = [path for conduit in conduits for path in conduit.get("paths") or ()]
    chosen = [choice for path in paths for choice in path.get("choices") or ()]
    found = {_policy(holder) for holder in (*conduits, *paths, *chosen)}
    return frozenset(policy for policy in found if policy and not policy.startswith(_LIBRARY))


def _of_taints(pipeline: Object, inventory: Inventory) -> list[str]:
    found = [str((spec(task).get("taint") or {}).get("name", "")) for task in existing_tasks(pipeline, inventory)]
    return [policy for policy in found if policy and not policy.startswith(_LIBRARY)]


def _policy(holder: Mapping[str, Any]) -> str:
    return str((holder.get("policy") or {}).get("name", ""))


def existing_tasks(pipeline: Object, inventory: Inventory) -> Iterator[Object]:
    """Yield those of a pipeline's tasks that exist."""
    for task in tasks(pipeline):
        found = inventory.find("Task", namespace(pipeline), task)
        if found is not None:
            yield found
