# SPDX-License-Identifier: BSD-2-Clause
"""The pipelines that a pool runs, their modes, the runtimes of their tasks, and the principals that they know.

The owner of the JailPool decides. A pipeline does not get a pool because it is older or has waited longer than another
one. A pipeline that a pool does not allow has no effect on the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile import references
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.objects import name, namespace, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Inventory, Object

DEFAULT_MODES = ("shai", "dynamic", "dynamic-lazy")
_AUDIT, _ENFORCE = "audit", "Enforce"


def served_namespace(pool: Object, stable: Release | None = None) -> str:
    """Return the namespace whose pipelines a pool runs; empty: none.

    A pool that does not name namespaces keeps the one that it serves, because pools were made before this field
    existed. ``stable`` is its release in force, which names the namespace when the status does not yet.
    """
    allowed = spec(pool).get("allowedNamespaces")
    if allowed is not None:
        names = allowed.get("names") or ()
        return str(names[0]) if names else ""
    known = status(pool).get("namespace")
    if known is None and stable is not None:
        return stable.namespace
    return str(known or "")


def refusal(pipeline: Object, inventory: Inventory) -> Condition | None:
    """Return the condition Accepted that says why a pipeline may not use its pool; None: it may.

    The message does not name other namespaces, whose names a user of this one may not know.
    """
    pool = references.pool(pipeline)
    obj = inventory.find("JailPool", "", pool)
    if obj is None:
        message = f"there is no JailPool {pool}; create it, or set spec.pool to one that exists"
        return Condition("Accepted", FALSE, "PoolMissing", message)
    space = namespace(pipeline)
    if served_namespace(obj) != space:
        message = (
            f"JailPool {name(obj)} does not serve namespace {space}; ask its owner to name the namespace in "
            "spec.allowedNamespaces, or set spec.pool to another pool"
        )
        return Condition("Accepted", FALSE, "NamespaceNotAllowed", message)
    return None


def principals(inventory: Inventory, space: str) -> list[Object]:
    """Return the Principals that pipelines of a namespace know: those that name it, and those that name none."""
    return [principal for principal in inventory.all("Principal") if _known_in(principal, space)]


def _known_in(principal: Object, space: str) -> bool:
    allowed = spec(principal).get("allowedNamespaces")
    return allowed is None or space in (allowed.get("names") or ())


def modes(pool: Object) -> tuple[str, ...]:
    """Return the modes that a pool allows."""
    allowed = spec(pool).get("allowedModes")
    return DEFAULT_MODES if allowed is None else tuple(allowed)


def runtimes(pool: Object) -> tuple[str, ...]:
    """Return the names of the runtimes that a pool gives to tasks."""
    return tuple(runtime["name"] for runtime in spec(pool).get("runtimes") or ())


def runtime_refusal(pool: Object, tasks: Iterable[Object]) -> str:
    """Say which runtime of a task a pool does not give; empty: it gives all, or the tasks name none.

    A task that still lists the paths of its runtime stays in force until its pool gives runtimes.
    """
    given = runtimes(pool)
    for task in tasks:
        wanted = spec(task).get("runtimeName")
        if spec(task).get("runtime") and spec(pool).get("runtimes") is not None:
            return (
                f"task {name(task)} lists the paths of its runtime, and JailPool {name(pool)} gives runtimes by name; "
                "name one in the task's spec.runtimeName instead"
            )
        if wanted and wanted not in given:
            has = f"has the runtimes {', '.join(given)}" if given else "has no runtimes"
            return (
                f"task {name(task)} names runtime {wanted}, and JailPool {name(pool)} {has}; name another one in the "
                "task's spec.runtimeName, or ask the pool's owner to add it to spec.runtimes"
            )
    return ""


def runtime_delay(pool: Object, tasks: Iterable[Object]) -> str:
    """Say which runtime of a task not all members have yet; empty: they have all, or the pool was never looked at.

    A monitor refuses what names a runtime that it was not given, and a rollout would end with that.
    """
    known = status(pool).get("runtimes")
    for task in tasks:
        wanted = spec(task).get("runtimeName")
        if wanted and known is not None and wanted not in known:
            return (
                f"task {name(task)} names runtime {wanted}, which not all members of JailPool {name(pool)} have yet; "
                "this changes when they are updated"
            )
    return ""


def mode_refusal(pool: Object, wanted: Iterable[str], policies: Iterable[tuple[str, str]] = ()) -> str:
    """Say why a pool does not run a pipeline in the modes ``wanted``; empty: it does.

    ``policies`` are names and modes of the policies that the pipeline uses. A policy in mode Audit or Warn allows the
    accesses that it records, as a pipeline in mode audit does.
    """
    allowed = modes(pool)
    allows = f"JailPool {name(pool)} allows {', '.join(allowed) or 'none'}"
    remedy = "choose another mode, or ask the pool's owner to add it to spec.allowedModes"
    refused = [mode for mode in wanted if mode not in allowed]
    if refused:
        return f"mode {refused[0]} is not allowed ({allows}); {remedy}"
    tried = [] if _AUDIT in allowed else [(policy, mode) for policy, mode in policies if mode != _ENFORCE]
    if tried:
        policy, mode = tried[0]
        return f"Policy {policy} is in mode {mode}, which counts as {_AUDIT} and is not allowed ({allows}); {remedy}"
    return ""
