# SPDX-License-Identifier: BSD-2-Clause
"""A share: a namespace's part of a pool, with the members that belong to it and a release and rollout of its own.

The status of the pool keeps each share in an entry of ``namespaces``. An earlier version of the operator served one
namespace with a pool, and kept the same fields in the status itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import enforcement, tenants
from shai_operator.reconcile.objects import status
from shai_operator.reconcile.rollout_state import State, read
from shai_operator.reconcile.tenants import Tenant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Inventory, Object

MOST = 256
"""Shares that a status has room for."""
_RELEASES = ("stableRelease", "candidateRelease", "rejectedRelease")
KEPT = (*_RELEASES, "rollout")
"""Fields of an entry that a decision rests on."""


@dataclass(frozen=True)
class Share:
    """A namespace's part of a pool, as the pool's status has it."""

    pool: Object
    tenant: Tenant
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Its entry in the status; empty when there is none yet."""
    running: frozenset[str] = frozenset()
    """The releases that its members have in force, by the status."""

    @property
    def stable(self) -> str:
        """The release in force on members outside of a rollout; empty: none yet."""
        return str(self.kept.get("stableRelease") or "")

    @property
    def candidate(self) -> str:
        """The release that is being rolled out; empty: none."""
        return str(self.kept.get("candidateRelease") or "")

    @property
    def rejected(self) -> str:
        """The release that was rolled back; empty: none."""
        return str(self.kept.get("rejectedRelease") or "")

    @property
    def state(self) -> State:
        """The state of its rollout."""
        return read(self.kept)


def of(pool: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> dict[Tenant, Share]:
    """Return the shares that the status of a pool has, those with members among them.

    ``stored`` are the releases that the status names. One of a status from an earlier version may be all that tells
    which namespace that version served.
    """
    owner = former(pool, inventory, stored)
    entries = {
        Tenant(str(entry["name"]), str(entry.get("uid") or "")): entry for entry in status(pool).get("namespaces") or ()
    }
    if owner is not None:
        known = status(pool)
        entries[owner] = {key: known[key] for key in KEPT if key in known}
    running: dict[Tenant, set[str]] = {tenant: set() for tenant in entries}
    for row in status(pool).get("members") or ():
        tenant = owner or tenants.of_row(row)
        if tenant != tenants.NOBODY:
            running.setdefault(tenant, set()).add(str(row.get("release") or ""))
    return {
        tenant: Share(pool, tenant, entries.get(tenant, {}), frozenset(names - {""}))
        for tenant, names in running.items()
    }


def entry(pool: Object, called: str, inventory: Inventory) -> Mapping[str, Any]:
    """Return what the status of a pool has of the namespace that has this name now; empty when it has nothing."""
    tenant = tenants.find(called, inventory)
    share = of(pool, inventory).get(tenant) if tenant else None
    return share.kept if share else {}


def rows(pool: Object, called: str, inventory: Inventory) -> list[Mapping[str, Any]]:
    """Return the rows of the members that belong to the namespace that has this name now, by ordinal."""
    tenant, owner = tenants.find(called, inventory), former(pool, inventory)
    known = status(pool).get("members") or ()
    own = [row for row in known if tenant is not None and (owner or tenants.of_row(row)) == tenant]
    return sorted(own, key=lambda row: int(row.get("ordinal", 0)))


def named(kept: Mapping[str, Any]) -> frozenset[str]:
    """Return the releases that an entry of a status names."""
    state = read(kept)
    fields = {str(kept.get(key) or "") for key in _RELEASES}
    return frozenset({*fields, state.candidate, state.superseded} - {""})


def releases_named(pool: Object) -> frozenset[str]:
    """Return the names of the releases that the rollouts of a pool need."""
    known = status(pool)
    return named(known).union(*map(named, known.get("namespaces") or ()))


def releases_needed(pool: Object) -> frozenset[str]:
    """Return the names of the releases that a reconciliation of the pool needs, and of those that its members run.

    Whether the pool still allows what a member runs follows from its release, also when nothing else needs that.
    """
    empty = enforcement.empty_bundle(pool).release.name  # never stored
    rows = {str(row.get("release") or "") for row in status(pool).get("members") or ()}
    return releases_named(pool) | rows - {"", empty}


def former(pool: Object, inventory: Inventory, stored: Mapping[str, Release] | None = None) -> Tenant | None:
    """Return the namespace that an earlier version of the operator served with a pool; None: the status is not of it.

    All members of such a pool have data of the namespace of the release in force.
    """
    known = status(pool)
    if "namespaces" in known:
        return None
    release = (stored or {}).get(str(known.get("stableRelease") or known.get("candidateRelease") or ""))
    called = (release.namespace if release else "") or str(known.get("namespace") or "")
    return (tenants.find(called, inventory) or Tenant(called, "")) if called else None
