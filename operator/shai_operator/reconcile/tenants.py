# SPDX-License-Identifier: BSD-2-Clause
"""Namespaces as tenants of pools.

A namespace that is deleted and made again has the same name and another UID, and may be a stranger's. So a tenant is
known by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import name, uid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Inventory, Object


@dataclass(frozen=True, order=True)
class Tenant:
    """A namespace, and no other one that gets its name later."""

    name: str
    uid: str
    """Empty: it did not exist any more when this was to be remembered."""


NOBODY = Tenant("", "")
"""What members belong to that have had nothing of any namespace."""


def of(namespace: Object) -> Tenant:
    """Return the tenant that a Namespace is."""
    return Tenant(name(namespace), uid(namespace))


def find(called: str, inventory: Inventory) -> Tenant | None:
    """Return the tenant that has a name now; None when no namespace has it."""
    found = inventory.find("Namespace", "", called)
    return None if found is None else of(found)


def of_row(row: Mapping[str, Any]) -> Tenant:
    """Return whose a member is, by its row in the status of its pool."""
    return Tenant(str(row.get("namespace") or ""), str(row.get("namespaceUID") or ""))
