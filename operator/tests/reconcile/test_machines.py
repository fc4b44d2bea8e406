# SPDX-License-Identifier: BSD-2-Clause
"""Pools of jails in virtual machines: upgrades, failures, hosts that are lost, orphans, and required enforcement."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shai_operator.reconcile.members import ForgetMembers, ProvisionMembers, RemoveMembers
from tests.reconcile.machine_world import NEW, OLD, MachineWorld, VirtualMachine, machine_of, ready


def progressing(world: MachineWorld) -> tuple[str, str]:
    return world.condition("JailPool", "default", "Progressing")


def message(world: MachineWorld, kind: str) -> str:
    return next(str(one["message"]) for one in world.status["conditions"] if one["type"] == kind)


def removed(world: MachineWorld) -> list[str]:
    return [place.name for action in world.trail if isinstance(action, RemoveMembers) for place in action.members]


# Machines come and go with their members.


def test_machines_are_spread_and_described() -> None:
    world = ready()
    assert {called: vm.host for called, vm in world.vms.items()} == {"default-vm-0": "h1", "default-vm-1": "h2"}
    assert world.rows()["default-vm-1"] == {
        "name": "default-vm-1",
        "host": "h2",
        "address": "10.1.0.2",
        "image": OLD,
        "state": "Running",
        "jails": 2,
    }
    assert world.status["hosts"][0] == {
        "name": "h1",
        "reached": "True",
        "freeMemoryMebibytes": 3840,
        "virtualMachines": 1,
        "jails": 2,
        "version": "FreeBSD 14.4-RELEASE amd64",
    }
    assert world.status["placement"].startswith("h1: 1 VM, 2 jails, FreeBSD 14.4")
    assert (world.status["machineImage"], world.status["orphans"]) == (OLD, [])


def test_scaling_in_destroys_a_machine_with_its_last_member() -> None:
    world = ready()
    world.change("JailPool", "default", replicas=3)
    world.settle()
    assert sorted(world.vms) == ["default-vm-0", "default-vm-1"]
    world.change("JailPool", "default", replicas=2)
    world.settle()
    assert sorted(world.vms) == ["default-vm-0"]
    world.change("JailPool", "default", replicas=0)
    world.settle()
    assert (world.vms, world.machines, world.status["virtualMachines"]) == ({}, {}, [])
    world.change("JailPool", "default", replicas=4)
    world.settle()
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_deletion_leaves_no_machine() -> None:
    world = ready()
    world.delete()
    world.settle()
    assert (world.vms, world.machines, world.pool["metadata"]["finalizers"]) == ({}, {}, [])


def test_without_its_status_a_pool_adopts_its_machines() -> None:
    world = ready()
    before = {called: vm.host for called, vm in world.vms.items()}
    world.known.put({**world.pool, "status": {}})
    world.settle()
    assert {called: vm.host for called, vm in world.vms.items()} == before
    assert removed(world) == []
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_without_its_status_nothing_is_made_while_a_host_is_dark() -> None:
    world = ready()
    world.known.put({**world.pool, "status": {}})
    world.dark, world.restarted = {"h1"}, True
    world.settle()
    assert {called: vm.host for called, vm in world.vms.items()} == {"default-vm-0": "h1", "default-vm-1": "h2"}
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "Surveying")
    places = [place.ordinal for one in world.trail if isinstance(one, ProvisionMembers) for place in one.members]
    assert set(places) == {2, 3}, "those whose machine was found"


def test_machines_of_another_authority_are_told_and_left_alone() -> None:
    """As all of them are when the operator's Secret was lost, which is made anew then."""
    world = ready()
    world.broken, world.broken_by = {"default-vm-0"}, "PlaybookFailed"
    world.vms["default-vm-0"].foreign = True
    world.vms["default-vm-7"] = VirtualMachine("h1", OLD, foreign=True)
    world.settle(20, seconds=60)
    row = world.rows()["default-vm-0"]
    assert row["state"] == "Running"
    assert "before the Secret shai-authority was lost" in row["message"]
    assert "adopt the machine (docs/operations.md)" in row["message"]
    assert (removed(world), world.status["orphans"]) == ([], [])
    world.broken, world.vms["default-vm-0"].foreign = set(), False
    world.settle(20, seconds=60)
    assert "Secret" not in world.rows()["default-vm-0"].get("message", "")


# Another image.


def test_an_upgrade_replaces_one_machine_after_the_other() -> None:
    world = ready(replicas=6)
    world.upgrade()
    for _ in range(60):
        world.look()
        serving = sum(1 for called in world.machines if world.observation(called, row(world, called)).monitor)
        assert serving >= 4, "only the members of one machine are away"
        world.now += timedelta(seconds=10)
    assert set(world.images().values()) == {NEW}
    assert world.status["machineImage"] == NEW
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    assert sorted(removed(world)) == [f"default-{number}" for number in range(6)], "each member once"
    assert [event.reason for event in world.events if event.reason == "MachineImageUpdated"]


def row(world: MachineWorld, called: str) -> Any:
    return world.observed().members[called]


def test_members_are_drained_before_their_machine_goes() -> None:
    world = ready()
    world.machines["default-0"].sessions = 1
    world.upgrade()
    world.settle(2, seconds=1)
    assert "default-0" in world.machines
    assert world.rows()["default-vm-0"]["state"] == "Replacing"
    assert world.images()["default-vm-0"] == OLD
    assert progressing(world) == ("True", "Replacing")
    world.settle(40)
    assert set(world.images().values()) == {NEW}


@pytest.mark.parametrize("replicas", [1, 6])
def test_a_pool_is_not_ready_while_members_are_away_with_their_machine(replicas: int) -> None:
    world = ready(replicas=replicas)
    world.upgrade()
    seen = set()
    for _ in range(80):
        world.settle(1, seconds=5)
        conditions = {found: world.condition("JailPool", "default", found)[0] for found in ("Ready", "Provisioned")}
        if world.status["replicas"] < replicas or world.status["readyReplicas"] < replicas:
            assert conditions["Ready"] == "False", world.status
        seen.add(world.condition("JailPool", "default", "Ready"))
    assert ("False", "Replacing") in seen
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_an_image_whose_failures_have_changing_reasons_is_rolled_back() -> None:
    world = ready(replicas=8, hosts=[{"name": "h1", "address": "192.0.2.1", "maxMembers": 12}])
    world.bad = {NEW}
    world.upgrade()
    for attempt in range(200):
        world.broken_by = ("GuestUnreachable", "PlaybookFailed")[attempt % 2]
        world.settle(1, seconds=60)
    assert world.status["rejectedMachineImage"] == NEW
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


@pytest.mark.parametrize("replicas", [4, 5, 1])
def test_with_a_surge_an_upgrade_begins_with_further_machines(replicas: int) -> None:
    """The members of a machine go when those of the surge are ready, and the surge goes at the end."""
    world = ready(replicas=replicas)
    before, members = len(world.vms), set(world.machines)
    world.upgrade(surge=1)
    most = 0
    for _ in range(60):
        world.settle(1, seconds=30)
        assert world.status["readyReplicas"] >= replicas
        most = max(most, len(world.vms))
    assert most == before + 1
    assert set(world.images().values()) == {NEW}
    assert (len(world.vms), set(world.machines)) == (before, members), "members keep their names and addresses"
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_a_surge_of_an_image_that_does_not_work_costs_no_member() -> None:
    world = ready()
    world.bad = {NEW}
    world.upgrade(surge=1)
    for _ in range(60):
        world.settle(1, seconds=30)
        assert world.status["readyReplicas"] == 4
    assert progressing(world) == ("False", "ReplacementRolledBack")
    assert set(world.images().values()) == {OLD}
    assert sorted(world.vms) == ["default-vm-0", "default-vm-1"]


def test_a_surge_without_room_waits_and_says_for_what() -> None:
    world = ready()
    world.change("JailPool", "default", hosts=[{**host, "maxMembers": 2} for host in world.pool["spec"]["hosts"]])
    world.upgrade(surge=1)
    world.settle(20, seconds=30)
    assert set(world.images().values()) == {OLD}
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "TooFewHosts")
    world.upgrade(surge=0)
    world.settle(60, seconds=30)
    assert set(world.images().values()) == {NEW}


def test_unless_it_may_an_operator_deletes_no_data() -> None:
    world = ready()
    world.upgrade(replacement="Manual")
    world.settle()
    assert set(world.images().values()) == {OLD}
    assert progressing(world) == ("False", "ReplacementHeld")
    assert "default-vm-0, default-vm-1" in message(world, "Progressing")
    world.upgrade(replacement="Automatic")
    world.settle(50)
    assert set(world.images().values()) == {NEW}


def test_a_changed_mind_before_the_first_removal_keeps_the_members() -> None:
    world = ready()
    world.machines["default-0"].sessions = 1
    world.machines["default-1"].sessions = 1
    world.upgrade()
    world.settle(2, seconds=1)
    world.upgrade(OLD)
    world.settle()
    assert removed(world) == []
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_an_image_that_does_not_work_is_rolled_back_and_not_tried_again() -> None:
    world = ready(replicas=6)
    world.bad = {NEW}
    world.upgrade()
    world.settle(60, seconds=30)
    assert set(world.images().values()) == {OLD}
    assert progressing(world) == ("False", "ReplacementRolledBack")
    assert (world.status["machineImage"], world.status["rejectedMachineImage"]) == (OLD, NEW)
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    rejected = [event.message for event in world.events if event.reason == "MachineImageRejected"]
    assert len(rejected) == 1
    assert "default-vm-0" in rejected[0]
    assert len(set(removed(world))) == 2, "the second machine kept its image"
    corrected = NEW.replace("b" * 128, "c" * 128)
    world.upgrade(corrected)
    world.settle(80)
    assert set(world.images().values()) == {corrected}
    assert "rejectedMachineImage" not in world.status


def test_an_image_with_too_little_enforcement_is_rolled_back() -> None:
    world = ready()
    world.upgrade()
    for _ in range(60):
        weak = {called for called in world.machines if world.vms[machine_of(called)].image == NEW}
        world.backends = dict.fromkeys(weak, "capsicum")
        world.settle(1)
    assert set(world.images().values()) == {OLD}
    assert world.status["rejectedMachineImage"] == NEW


@settings(max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    crashes=st.lists(st.tuples(st.integers(0, 10), st.sampled_from([1, 10, 40])), max_size=25),
    bad=st.sampled_from([(), (NEW,)]),
    replicas=st.integers(0, 6),
    surge=st.integers(0, 2),
)
def test_a_crash_after_any_action_changes_nothing_in_the_end(
    crashes: list[tuple[int, int]], bad: tuple[str, ...], replicas: int, surge: int
) -> None:
    world = ready(replicas=6)
    world.bad = set(bad)
    world.upgrade(surge=surge)
    for number, (actions, seconds) in enumerate(crashes):
        if number == 8:
            world.change("JailPool", "default", replicas=replicas)
        world.look(actions)
        world.now += timedelta(seconds=seconds)
    size = replicas if len(crashes) > 8 else 6
    world.settle(120, seconds=30)
    assert len(world.machines) == size
    assert set(world.images().values()) <= {OLD if bad else NEW}
    assert len(world.vms) == (size + 1) // 2
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


# Failures.


def test_a_machine_that_cannot_be_reached_is_replaced() -> None:
    world = ready()
    world.broken = {"default-vm-0"}
    for _ in range(30):
        world.settle(1, seconds=30)
        if "default-vm-0" not in world.vms:
            world.broken = set()
    assert sorted(set(removed(world))) == ["default-0", "default-1"]
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


@pytest.mark.parametrize(
    "reason",
    [
        "NoVirtualization", "StorageFull", "ImageFetchFailed", "ChecksumMismatch", "ArchitectureMismatch", "JailStuck",
        "GuestUnreachable", "BridgeConflict", "ClockSkew", "EnforcementInsufficient", "AuthenticationFailed",
        "HostKeyMismatch", "PlaybookFailed", "TimedOut", "ImageMissing",
    ],
)  # fmt: skip
def test_what_fails_is_told_and_listed(reason: str) -> None:
    """Whatever an attempt has left is in the status until it is whole or gone."""
    world = ready()
    world.upgrade(OLD, replacement="Manual")
    world.broken, world.broken_by = {"default-vm-0"}, reason
    world.events.clear()
    world.settle(10, seconds=30)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", reason)
    assert f"default-0: {reason}" in message(world, "Provisioned")
    told = [event for event in world.events if event.reason == reason]
    assert any("default-0" in event.message for event in told), world.events
    assert "default-vm-0" in [row["name"] for row in world.status["virtualMachines"]]
    assert removed(world) == []


def test_unless_it_may_not_be_replaced() -> None:
    world = ready()
    world.upgrade(OLD, replacement="Manual")
    world.broken = {"default-vm-0"}
    world.settle(30, seconds=30)
    assert removed(world) == []
    assert progressing(world) == ("False", "ReplacementHeld")
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "GuestUnreachable")


def test_a_host_out_of_reach_keeps_its_machines_until_a_person_says_that_it_is_gone() -> None:
    world = ready()
    lost = dict(world.vms)
    world.dark = {"h2"}
    world.settle(30)
    assert world.vms == lost
    assert world.rows()["default-vm-1"]["state"] == "Unknown"
    assert world.status["hosts"][1]["reached"] == "False"
    told = [event.message for event in world.events if event.reason == "HostUnreachable"]
    assert [text for text in told if not text.startswith("member")] == ["host h2 does not answer"]
    assert removed(world) == []
    hosts = [dict(host) for host in world.pool["spec"]["hosts"]]
    hosts[1]["state"] = "Gone"
    del world.vms["default-vm-1"]  # a person has switched the host off
    world.machines = {called: one for called, one in world.machines.items() if called in {"default-0", "default-1"}}
    world.change("JailPool", "default", hosts=hosts)
    for _ in range(30):
        world.settle(1)
        ready_members = world.status["readyReplicas"]
        assert ready_members == 4 or world.condition("JailPool", "default", "Ready")[0] == "False", world.status
    assert world.vms["default-vm-1"].host == "h1"
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    assert len([action for action in world.trail if isinstance(action, ForgetMembers)]) == 2


def test_an_upgrade_leaves_alone_what_nobody_can_destroy() -> None:
    world = ready(update={"maxUnavailable": 4})
    world.dark = {"h2"}
    world.upgrade()
    world.settle(20)
    assert world.images() == {"default-vm-0": NEW, "default-vm-1": OLD}
    assert sorted(set(removed(world))) == ["default-0", "default-1"]
    assert progressing(world) == ("True", "Replacing")
    world.dark = set()
    world.settle(20)
    assert set(world.images().values()) == {NEW}


def test_a_host_off_the_list_may_still_run_machines() -> None:
    world = ready()
    world.change("JailPool", "default", hosts=world.pool["spec"]["hosts"][:1])
    world.settle()
    assert sorted(world.vms) == ["default-vm-0", "default-vm-1"]
    assert removed(world) == []
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "HostUnreachable")
    assert "list it again, with state: Gone" in message(world, "Provisioned")


# Enforcement.


@pytest.mark.parametrize(
    ("requires", "backend", "text"),
    [
        ("CapsicumModule", "capsicum+shai.ko", "one"),
        ("CapsicumModule", "capsicum", ""),
        ("CapsicumModule", "", ""),
        ("Capsicum", "capsicum", "one"),
        ("Capsicum", "capsicum+shai.ko", "one"),
        ("Capsicum", "landlock+seccomp", ""),
        ("Capsicum", "", ""),
        ("None", "", "one"),
    ],
)
def test_a_member_with_less_than_its_pool_requires_is_not_used(requires: str, backend: str, text: str) -> None:
    world = MachineWorld(replicas=2, requires=requires)
    world.backends = {"default-1": backend}
    world.settle()
    rows = {one["name"]: one for one in world.status["members"]}
    assert world.texts() == ["one", text]
    assert rows["default-1"]["reason"] == ("Ready" if text else "EnforcementInsufficient")


def test_enforcement_that_is_lost_ends_what_runs_and_comes_back_with_it() -> None:
    world = ready(replicas=2)
    world.backends = {"default-0": "capsicum"}
    world.settle()
    assert world.texts() == ["", "one"]
    assert world.condition("JailPool", "default", "Ready") == ("False", "EnforcementInsufficient")
    assert "spec.requires is CapsicumModule" in message(world, "Ready")
    assert [event.reason for event in world.events].count("EnforcementInsufficient") == 1
    world.backends = {}
    world.settle()
    assert world.texts() == ["one", "one"]
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
