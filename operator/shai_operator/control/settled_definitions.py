# SPDX-License-Identifier: BSD-2-Clause
"""What the namespaces of a pool are to run, as far as it can be taken up now.

Each namespace waits for itself: for verdicts, for its objects to settle, and for kinds that are missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.control.kinds import KindsMissingError
from shai_operator.reconcile import definitions, releases, tenancy
from shai_operator.reconcile.actions import WARNING, Emit, Plan
from shai_operator.reconcile.objects import deleting, name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.services import Services
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.releases import Definitions
    from shai_operator.reconcile.shares import Share
    from shai_operator.reconcile.tenants import Tenant

SETTLE_SECONDS = 1.5
"""How long definitions have to be unchanged before they become a release."""


@dataclass(frozen=True)
class Settled:
    """The shares of a pool, and what is known of them."""

    shares: Mapping[Tenant, Share]
    definitions: Mapping[Tenant, Definitions] = field(default_factory=dict)
    """Those that can be taken up now."""
    again_seconds: float | None = None
    """When to look at the others again; None: something happens before they can be taken up."""


async def settled(services: Services, pool: Object, stored: Mapping[str, Release]) -> Settled:
    """Return what the namespaces of a pool are to run; ``stored`` are the releases that its status names.

    KindsMissingError when the pool is deleted while a kind is missing: it could be a mistake.
    """
    served = tenancy.served(pool, services.loop.inventory, stored)
    if deleting(pool):
        await services.kinds.check(changing=True)
        return Settled(served)
    found: dict[Tenant, Definitions] = {}
    waits: list[float] = []
    for tenant, share in served.items():
        built, seconds = await _of_share(services, share, stored)
        if built is not None:
            found[tenant] = built
        if seconds is not None:
            waits.append(seconds)
    return Settled(served, found, min(waits, default=None))


async def tell_missing(services: Services, pool: Object, error: KindsMissingError) -> None:
    """Record an event about kinds that are missing."""
    await services.executor.execute(Plan([Emit(pool, WARNING, "KindMissing", str(error))]))


async def _of_share(
    services: Services, share: Share, stored: Mapping[str, Release]
) -> tuple[Definitions | None, float | None]:
    """Return what a namespace is to run, None when it is not to be taken up now, and when to look again."""
    inventory, space = services.loop.inventory, share.tenant.name
    refused = None
    if not services.verdicts.pending(space):
        refused = definitions.refused(name(share.pool), space, services.verdicts.found, inventory)
    # If the pool forbids something that runs, neither verdicts nor the settling time delay its end.
    urgent = releases.withdrawing(share, stored)
    if refused is None and not urgent:
        return None, None  # the verdict is pending; when it arrives, the pool is reconciled again
    built = releases.build(inventory, share, refused, stored)
    changing = built.release != releases.in_force(share, stored)
    again = None
    try:
        # If a kind is missing, so are its objects, and pipelines are left out for that reason: an event says why.
        await services.kinds.check(changing=changing or bool(built.left_out))
    except KindsMissingError as error:
        await tell_missing(services, share.pool, error)
        if changing:
            return None, error.again_seconds
        again = error.again_seconds
    if changing and not urgent and (unsettled := _unsettled(services, space)) > 0:
        return None, unsettled
    return built, again


def _unsettled(services: Services, namespace: str) -> float:
    """Return for how many seconds a namespace's definitions still have to be unchanged.

    Objects of one `kubectl apply` arrive one after the other, and should come into force together.
    """
    changed = services.loop.redefined.get(namespace, 0.0)
    return changed + SETTLE_SECONDS - time.monotonic()
