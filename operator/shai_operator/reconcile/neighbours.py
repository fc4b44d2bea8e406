# SPDX-License-Identifier: BSD-2-Clause
"""What other pools have on a pool's hosts: virtual machines that are placed there, and may not run yet.

A survey tells of the memory that is free now. Two pools that are placed after one survey must not both count on it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from shai_operator.reconcile import bridges
from shai_operator.reconcile.addresses import canonical
from shai_operator.reconcile.machines import has_machines, memory_mebibytes
from shai_operator.reconcile.objects import name, spec, status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Inventory, Object


def promised(pool: Object, inventory: Inventory, placed: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Return by address of a host the virtual machines of other pools there, with their memory in MiB.

    ``placed`` are the hosts of virtual machines by pool, as they were chosen last: a status that is still to be written
    does not have them. A pool that must not have the network of its hosts makes none there.
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for other in inventory.all("JailPool"):
        if not has_machines(other) or name(other) == name(pool) or bridges.conflict(other, inventory):
            continue
        addresses = {host["name"]: canonical(host["address"]) for host in spec(other).get("hosts") or ()}
        rows = {row["name"]: row.get("host", "") for row in status(other).get("virtualMachines") or ()}
        for machine, host in {**rows, **placed.get(name(other), {})}.items():
            if host in addresses:
                found[addresses[host]][machine] = memory_mebibytes(other)
    return dict(found)
