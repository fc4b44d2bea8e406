# SPDX-License-Identifier: BSD-2-Clause
"""Choices of documents' policies by their owners, and whether a pipeline may permit them.

A choice is signed for one monitor, and only that one keeps it. On another member the document would be under the
pipeline's policy, perhaps open to those from whom its owner has withdrawn it. So who permits choices has one member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile import tenants
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.objects import name, spec, status

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.tenants import Tenant

REASON = "ChoicesNotShared"


def refusal(pool: Object, tenant: Tenant, pipeline: Object) -> str:
    """Say which path of a pipeline may not permit choices, with the members that its namespace has; empty: none."""
    members = [row for row in status(pool).get("members") or () if tenants.of_row(row) == tenant]
    if len(members) <= 1:
        return ""
    for conduit in spec(pipeline).get("conduits") or ():
        for path in conduit.get("paths") or ():
            if path.get("choices"):
                return (
                    f"path {path.get('path')} of conduit {conduit.get('name')} permits choices, and only one member "
                    f"would know of each: JailPool {name(pool)} has {count(len(members), 'member')} for this "
                    "namespace; remove the choices, or have the pool's owner leave it one member"
                )
    return ""
