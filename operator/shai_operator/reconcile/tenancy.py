# SPDX-License-Identifier: BSD-2-Clause
"""The namespaces that a pool serves, their pipelines' modes, their tasks' runtimes, and the principals that they know.

The owner of the JailPool decides. A pipeline does not get a pool because it is older or has waited longer than another
one. A pipeline that a pool does not allow has no effect on the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shai_operator.reconcile import references, selectors, shares, tenants
from shai_operator.reconcile.conditions import FALSE, Condition
from shai_operator.reconcile.objects import GROUP, deleting, name, namespace, spec, status
from shai_operator.reconcile.shares import Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.tenants import Tenant

DEFAULT_MODES = ("shai", "dynamic", "dynamic-lazy")
_AUDIT, _ENFORCE = "audit", "Enforce"
DISCARD = f"{GROUP}/discard-members"
"""The annotation of a JailPool with the names of namespaces that may not use it any more, separated by commas: their
members are removed with their data."""


class Claim(NamedTuple):
    """A namespace that gets a part of a pool's members."""

    tenant: Tenant
    active: bool
    """Whether it has a pipeline for the pool. A part that nobody uses yet is kept free."""


def allows(pool: Object, found: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> bool:
    """Whether a pool runs the pipelines of a Namespace.

    A pool that says nothing of namespaces keeps those that it serves, because pools were made before this field
    existed; for ``stored`` see `shares.of`.
    """
    given = _given(pool)
    if given is None:
        return tenants.of(found) in shares.of(pool, inventory, stored)
    labels = found["metadata"].get("labels") or {}
    return name(found) in (given.get("names") or ()) or selectors.matches(given.get("selector"), labels)


def allowed(pool: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> tuple[Tenant, ...]:
    """Return the namespaces that a pool `allows`: those that it names, in its order, then the others by name."""
    order = {called: number for number, called in enumerate((_given(pool) or {}).get("names") or ())}
    found = [obj for obj in inventory.all("Namespace") if allows(pool, obj, inventory, stored)]
    found.sort(key=lambda obj: (order.get(name(obj), len(order)), name(obj)))
    return tuple(map(tenants.of, found))


def serves(pool: Object, called: str, inventory: Inventory) -> bool:
    """Whether a pool runs the pipelines of the namespace that has this name now."""
    found = inventory.find("Namespace", "", called)
    return found is not None and allows(pool, found, inventory)


def claims(pool: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> tuple[Claim, ...]:
    """Return the namespaces that get a part of a pool's members, in the order of `allowed`.

    A namespace that the pool names gets its part from the beginning, and one that the selector finds when it has a
    pipeline for the pool: a selector may find any number of namespaces. One that is being deleted gets nothing more.
    """
    using = {
        namespace(pipeline)
        for pipeline in inventory.all("Pipeline")
        if references.pool(pipeline) == name(pool) and not deleting(pipeline)
    }
    given = _given(pool)
    found = []
    for tenant in allowed(pool, inventory, stored):
        named = given is None or tenant.name in (given.get("names") or ())
        active = tenant.name in using
        if (named or active) and not deleting(inventory.find("Namespace", "", tenant.name) or {"metadata": {}}):
            found.append(Claim(tenant, active))
    return tuple(found)


def served(pool: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> dict[Tenant, Share]:
    """Return the shares of the namespaces that a pool allows: of those that have members, and of those that claim some.

    There are no more than a status has room for; those that have members come first.
    """
    known = shares.of(pool, inventory, stored)
    claiming = {claim.tenant for claim in claims(pool, inventory, stored)}
    wanted = [tenant for tenant in allowed(pool, inventory, stored) if tenant in claiming or tenant in known]
    wanted.sort(key=lambda tenant: tenant not in known)
    return {tenant: known.get(tenant, Share(pool, tenant)) for tenant in wanted[: shares.MOST]}


def withdrawal(pool: Object, tenant: Tenant, may: Iterable[Tenant], inventory: Inventory) -> str:
    """Say why a member's namespace may not use the pool any more; empty: it is among those that ``may``."""
    if tenant == tenants.NOBODY or tenant in may:
        return ""
    present = tenants.find(tenant.name, inventory)
    why = f"namespace {tenant.name} may not use the pool any more"
    if present is None:
        why = f"namespace {tenant.name} was deleted"
    elif present != tenant:
        why = f"namespace {tenant.name} was deleted, and another one has this name now"
    again = "Allow it again in spec.allowedNamespaces, or delete" if present == tenant else "Delete"
    return (
        f"{why}: it runs nothing, and keeps its data. {again} the members of this namespace with their data: kubectl "
        f"annotate --overwrite jailpool {name(pool)} {DISCARD}={tenant.name}"
    )


def _given(pool: Object) -> Mapping[str, Any] | None:
    given: Mapping[str, Any] | None = spec(pool).get("allowedNamespaces")
    return given


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
    if not serves(obj, space, inventory):
        message = (
            f"JailPool {name(obj)} does not serve namespace {space}; ask its owner to allow the namespace in "
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
