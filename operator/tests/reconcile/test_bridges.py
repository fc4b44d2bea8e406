# SPDX-License-Identifier: BSD-2-Clause
"""Two pools of virtual machines on one host: which of them keeps the network."""

from __future__ import annotations

from typing import Any

import pytest

from shai_operator.reconcile import bridges
from shai_operator.reconcile.objects import Inventory
from tests.reconcile.builders import genuine, resource
from tests.reconcile.machine_world import spec


def pool(called: str, created: str, address: str = "192.0.2.1", **network: str) -> Any:
    ranges = {"addresses": "10.0.0.0/24", "machines": "10.1.0.0/24", **network}
    made = resource("JailPool", called, spec(hosts=[{"name": "h", "address": address}], network=ranges))
    made["metadata"]["creationTimestamp"] = created
    return made


LAN = {"subnet": "10.0.0.0/14", "gateway": "10.3.255.254"}
OTHER = {"addresses": "10.2.0.0/24", "machines": "10.3.0.0/24"}
FIRST, SECOND = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (pool("a", FIRST, uplink="em0"), pool("b", SECOND, uplink="em0", **OTHER), "network.uplink em0"),
        (pool("a", FIRST, uplink="em0"), pool("b", SECOND, uplink="em1", **OTHER), ""),
        (pool("a", FIRST), pool("b", SECOND, **OTHER), ""),
        (pool("a", FIRST), pool("b", SECOND), "addresses of 10.1.0.0/24 (network.machines)"),
        (pool("a", FIRST), pool("b", SECOND, **{**OTHER, "addresses": "10.1.0.0/25"}), "(network.addresses)"),
        (pool("a", FIRST), pool("b", SECOND, address="192.0.2.2"), ""),
        # Two interfaces of a host into one network: each pool has its own, and the router is elsewhere.
        (pool("a", FIRST, uplink="em0", **LAN), pool("b", SECOND, uplink="em1", **OTHER, **LAN), ""),
        # Without an uplink the host is the router, and has the whole subnet behind one bridge.
        (
            pool("a", FIRST, **LAN),
            pool("b", SECOND, **OTHER, **LAN),
            "10.0.0.0/14, which the host reaches by one bridge",
        ),
        (pool("a", FIRST, **LAN), pool("b", SECOND, uplink="em1", **OTHER), "network.subnet, network.gateway"),
        (pool("a", FIRST, uplink="em0", **OTHER), pool("b", SECOND, **LAN), "network.subnet, network.gateway"),
        (pool("a", FIRST, gateway="10.1.0.254"), pool("b", SECOND, **OTHER, gateway="10.3.0.254"), ""),
        (pool("b", FIRST), pool("a", FIRST), ""),
        (pool("a", SECOND), pool("b", FIRST), ""),
    ],
)
def test_the_older_pool_keeps_the_network(one: Any, other: Any, says: str) -> None:
    known = Inventory(genuine)
    for obj in (one, other):
        known.put({**obj, "status": {}})
    found = bridges.conflict(other, known)
    assert (says in found) if says else not found
    if says:
        assert bridges.conflict(one, known) == ""
