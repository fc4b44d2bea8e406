# SPDX-License-Identifier: BSD-2-Clause
"""Events about a pool itself: why its members cannot be made."""

from __future__ import annotations

from typing import Any

from shai_operator.reconcile.objects import Reference
from tests.reconcile.builders import resource
from tests.reconcile.machine_world import MachineWorld, ready, spec

UPLINK = {"addresses": "10.0.0.0/24", "machines": "10.1.0.0/24", "uplink": "igb0"}
FAULTS = ("BridgeConflict", "TooFewHosts", "HostUnreachable", "ImageMissing")


def older(**network: Any) -> Any:
    made = resource(
        "JailPool", "aged", spec(network={"addresses": "10.8.0.0/24", "machines": "10.9.0.0/24", **network})
    )
    made["metadata"]["creationTimestamp"] = "2000-01-01T00:00:00Z"
    return made


def told(world: MachineWorld) -> list[tuple[str, str]]:
    return [(event.type, event.reason) for event in world.events if event.reason in FAULTS]


def test_a_conflict_of_two_pools_is_one_event() -> None:
    world = MachineWorld(network=UPLINK)
    world.put(older(uplink="igb0"))
    world.settle(10)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "BridgeConflict")
    assert told(world) == [("Warning", "BridgeConflict")]
    (event,) = [event for event in world.events if event.reason == "BridgeConflict"]
    assert "host 192.0.2.1 is shared with JailPool aged" in event.message
    world.known.remove(Reference("JailPool", "", "aged"))
    world.settle(20)
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    assert len(told(world)) == 1
    world.put(older(uplink="igb0"))
    world.settle(10)
    assert told(world) == [("Warning", "BridgeConflict")] * 2, "once more when it comes back"


def test_a_pool_beside_another_one_has_no_such_event() -> None:
    world = MachineWorld(network=UPLINK)
    world.put(older(uplink="igb1"))
    world.settle(20)
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    assert told(world) == []


def test_hosts_without_room_are_one_event() -> None:
    world = ready()
    world.change("JailPool", "default", replicas=40)
    world.settle(20)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "TooFewHosts")
    assert told(world) == [("Warning", "TooFewHosts")]


def test_waiting_for_the_first_look_at_a_host_is_none() -> None:
    world = ready()
    world.known.put({**world.pool, "status": {}})
    world.dark, world.restarted = {"h1"}, True
    world.settle(5)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "Surveying")
    assert "Surveying" not in [event.reason for event in world.events]
