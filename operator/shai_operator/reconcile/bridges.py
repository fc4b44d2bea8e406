# SPDX-License-Identifier: BSD-2-Clause
"""Pools whose virtual machines would share a host's network.

An interface can be in one bridge only, and an address belongs to one machine only.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

from shai_operator.reconcile.addresses import canonical
from shai_operator.reconcile.machines import has_machines
from shai_operator.reconcile.objects import created, name, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Inventory, Object


def conflict(pool: Object, inventory: Inventory) -> str:
    """Say which older pool has the network that this one wants on a common host; empty: none has."""
    if not has_machines(pool):
        return ""
    for other in sorted(inventory.all("JailPool"), key=_age):
        if has_machines(other) and _age(other) < _age(pool):
            common = sorted(_addresses(pool) & _addresses(other))
            problem = _clash(pool, other) if common else ""
            if problem:
                return (
                    f"host {common[0]} is shared with JailPool {name(other)}, which is older, and both have {problem}: "
                    "give each pool its own, or other hosts"
                )
    return ""


def _age(pool: Object) -> tuple[str, str]:
    return created(pool), name(pool)


def _addresses(pool: Object) -> set[str]:
    return {canonical(host["address"]) for host in spec(pool).get("hosts") or ()}


def _clash(pool: Object, other: Object) -> str:
    mine, theirs = _network(pool), _network(other)
    if mine.get("uplink") and mine.get("uplink") == theirs.get("uplink"):
        return f"network.uplink {mine['uplink']}, which can be in one bridge only"
    for field in ("machines", "addresses"):
        for its in ("machines", "addresses"):
            if _overlap(str(mine.get(field) or ""), str(theirs.get(its) or "")):
                return f"addresses of {mine[field]} (network.{field})"
    for router, beside in ((mine, theirs), (theirs, mine)):
        routed = _routed(router)
        if any(_overlap(routed, str(beside.get(field) or "")) for field in ("subnet", "machines", "addresses")):
            return f"addresses of {routed}, which the host reaches by one bridge only (network.subnet, network.gateway)"
    return ""


def _routed(network: Mapping[str, str]) -> str:
    """Return the network in which the host itself has an address, as the router on a bridge; empty: it has none.

    Pools with uplinks may have one subnet: two of a host's interfaces can lead into one network, and their bridges give
    the host no address there.
    """
    if network.get("uplink") or not network.get("gateway"):
        return ""
    length = ip_network(network.get("subnet") or network["machines"]).prefixlen
    return str(ip_network(f"{network['gateway']}/{length}", strict=False))


def _network(pool: Object) -> Mapping[str, str]:
    return spec(pool).get("network") or {}


def _overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    first, second = ip_network(one), ip_network(other)
    return first.version == second.version and first.overlaps(second)
