# SPDX-License-Identifier: BSD-2-Clause
"""Orphans: what is on hosts and no pool wants is listed, and deleted when it is asked for."""

from __future__ import annotations

from shai_operator.reconcile.orphans import DELETE, RemoveOrphans
from tests.reconcile.builders import resource
from tests.reconcile.machine_world import OLD, MachineWorld, VirtualMachine, ready, spec


def annotate(world: MachineWorld, **annotations: str) -> None:
    metadata = {**world.pool["metadata"], "annotations": annotations}
    world.known.put({**world.pool, "metadata": metadata})


def test_orphans_are_listed_and_deleted_only_after_that() -> None:
    world = ready()
    world.vms["old-vm-3"] = VirtualMachine("h1", OLD, pool="old")
    world.vms["default-vm-7"] = VirtualMachine("h2", OLD)
    world.jails["default-vm-0"] = ("default-9",)
    names = ["h1/default-vm-0/default-9", "h1/old-vm-3", "h2/default-vm-7"]
    annotate(world, **{DELETE: ",".join(names)})
    world.look()
    assert world.status["orphans"] == names
    assert not [action for action in world.trail if isinstance(action, RemoveOrphans)], "not in the same step"
    annotate(world)
    world.settle()
    assert {"old-vm-3", "default-vm-7"} < set(world.vms)
    (event,) = [event for event in world.events if event.reason == "OrphansFound"]
    assert f"{DELETE}={','.join(names)}" in event.message
    annotate(world, **{DELETE: "h1/old-vm-3, h1/default-vm-0/default-9,h1/default-vm-0,h1/../etc"})
    world.settle()
    assert sorted(world.vms) == ["default-vm-0", "default-vm-1", "default-vm-7"]
    assert world.jails["default-vm-0"] == ()
    assert world.status["orphans"] == ["h2/default-vm-7"]


def test_an_orphan_is_deleted_once_and_a_later_one_of_its_name_is_asked_for_again() -> None:
    world = ready()
    world.vms["old-vm-3"] = VirtualMachine("h1", OLD, pool="old")
    world.look()
    annotate(world, **{DELETE: "h1/old-vm-3,h2/old-vm-4, h1/default-vm-0", "other": "stays"})
    world.settle()
    assert "old-vm-3" not in world.vms
    assert world.pool["metadata"]["annotations"] == {"other": "stays"}, "neither what is done nor what was not there"
    world.vms["old-vm-3"] = VirtualMachine("h1", OLD, pool="old")
    world.vms["old-vm-4"] = VirtualMachine("h2", OLD, pool="old")
    world.settle()
    assert world.status["orphans"] == ["h1/old-vm-3", "h2/old-vm-4"]
    assert {"old-vm-3", "old-vm-4"} < set(world.vms)


def test_what_is_to_be_deleted_waits_for_a_host_that_nobody_reaches() -> None:
    world = ready()
    world.vms["old-vm-3"] = VirtualMachine("h1", OLD, pool="old")
    world.look()
    world.dark = {"h1"}
    annotate(world, **{DELETE: "h1/old-vm-3"})
    world.settle(5)
    assert world.pool["metadata"]["annotations"] == {DELETE: "h1/old-vm-3"}
    world.dark = set()
    world.settle(5)
    assert ("old-vm-3" in world.vms, world.pool["metadata"]["annotations"]) == (False, {})


def test_a_jail_whose_name_hides_a_members_is_listed_and_left_alone() -> None:
    world = ready()
    world.jails["default-vm-0"] = ("default-0/x",)
    name = "h1/default-vm-0/default-0/x"
    world.look()
    assert world.status["orphans"] == [name]
    annotate(world, **{DELETE: name})
    world.settle()
    assert not [action for action in world.trail if isinstance(action, RemoveOrphans)]


def test_as_many_orphans_are_listed_as_a_status_can_have() -> None:
    world = ready()
    for number in range(300):
        world.vms[f"{number:03}{'x' * 250}"] = VirtualMachine("h1", OLD, pool="")
    world.vms["old-vm-0"] = VirtualMachine("h1", OLD, pool="old")
    world.look()
    assert len(world.status["orphans"]) == 256
    assert max(map(len, world.status["orphans"])) <= 252
    assert "h1/old-vm-0" in world.status["orphans"]


def test_another_pools_machines_are_no_orphans() -> None:
    world = ready()
    world.vms["other-vm-0"] = VirtualMachine("h1", OLD, pool="other")
    world.put(
        resource("JailPool", "other", spec(hosts=[], network={"addresses": "10.8.0.0/24", "machines": "10.9.0.0/24"}))
    )
    world.settle(3)
    assert world.status["orphans"] == []
