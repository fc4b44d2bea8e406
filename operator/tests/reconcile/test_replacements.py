# SPDX-License-Identifier: BSD-2-Clause
"""What is not destroyed: machines that serve, and machines for an image that cannot be had."""

from __future__ import annotations

import pytest

from shai_operator.reconcile.members import RemoveMembers
from tests.reconcile.machine_world import NEW, OLD, MachineWorld, ready

ALL = {f"default-vm-{number}" for number in range(4)}


def removed(world: MachineWorld) -> list[str]:
    return [place.name for action in world.trail if isinstance(action, RemoveMembers) for place in action.members]


def progressing(world: MachineWorld) -> tuple[str, str, str]:
    (found,) = [one for one in world.status["conditions"] if one["type"] == "Progressing"]
    return found["status"], found["reason"], found["message"]


def serving(world: MachineWorld) -> int:
    """Count the members whose monitors answer, whatever the status says of them."""
    members = world.observed().members
    return sum(1 for called in world.machines if members[called].monitor is not None)


def eight(**changes: object) -> MachineWorld:
    return ready(replicas=8, hosts=[{"name": "h1", "address": "192.0.2.1", "maxMembers": 12}], **changes)


def test_machines_that_serve_are_not_broken_when_only_runs_do_not_get_in() -> None:
    """A host whose sshd forwards nothing any more, or a key that has changed: the members go on."""
    world = eight()
    world.locked, world.digest = set(ALL), "c2"
    world.settle(60, seconds=60)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "GuestUnreachable")
    assert max(failure.attempts for failure in world.troubles.values()) > 2, "as many as make a dead one broken"
    assert removed(world) == []
    assert serving(world) == world.status["readyReplicas"] == 8


def test_one_that_serves_no_more_is_broken_beside_them() -> None:
    world = eight()
    world.locked, world.digest = set(ALL), "c2"
    world.settle(10, seconds=60)
    world.broken = {"default-vm-2"}
    for _ in range(40):
        world.settle(1, seconds=60)
        world.broken &= set(world.vms)
    assert sorted(set(removed(world))) == ["default-4", "default-5"]
    assert serving(world) == 8


def test_machines_that_are_all_broken_are_replaced_one_after_the_other() -> None:
    """If the first one does not come back, the cause is elsewhere, and the others keep their data."""
    world = eight()
    world.broken = set(ALL)
    for _ in range(60):
        world.settle(1, seconds=60)
        assert len(world.vms) >= 3
    assert set(removed(world)) == {"default-0", "default-1"}
    assert "default-vm-1" in world.rows()
    for _ in range(120):
        world.settle(1, seconds=60)
        assert len(world.vms) >= 3
        world.broken &= set(world.vms)
    assert len(set(removed(world))) == 8
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_an_upgrade_is_as_careful_with_members_whose_last_run_failed() -> None:
    world = eight()
    world.locked, world.digest = set(ALL), "c2"
    world.settle(4, seconds=1)
    assert removed(world) == []
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "GuestUnreachable")
    world.upgrade()
    for _ in range(80):
        world.settle(1, seconds=60)
        assert serving(world) >= 6, "only the members of one machine are away"
    assert set(world.images().values()) == {NEW}
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


@pytest.mark.parametrize("unavailable", [1, 8])
@pytest.mark.parametrize(
    "reason",
    ["ImageFetchFailed", "ChecksumMismatch", "StorageFull", "ClockSkew", "ArchitectureMismatch", "TimedOut"],
)
def test_an_image_that_cannot_be_had_costs_one_machine_and_is_not_rejected(reason: str, unavailable: int) -> None:
    world = eight(update={"maxUnavailable": unavailable})
    world.missing = {NEW: reason}
    world.upgrade()
    for _ in range(60):
        world.settle(1, seconds=60)
        assert serving(world) >= 6
    assert world.images() == {f"default-vm-{number}": OLD for number in (1, 2, 3)}
    status, held, message = progressing(world)
    assert (status, held) == ("False", "ReplacementHeld")
    assert f"Nothing more is deleted before this is mended: virtual machine default-vm-0: {reason}" in message
    assert world.condition("JailPool", "default", "Provisioned") == ("False", reason)
    assert "rejectedMachineImage" not in world.status
    world.missing = {}
    world.settle(60, seconds=60)
    assert set(world.images().values()) == {NEW}, "when it can be had, it goes on by itself"
    assert world.status["machineImage"] == NEW


def test_a_pool_goes_back_from_an_image_that_cannot_be_had_when_the_spec_does() -> None:
    world = eight()
    world.missing = {NEW: "ChecksumMismatch"}
    world.upgrade()
    world.settle(30, seconds=60)
    world.upgrade(OLD)
    world.settle(30, seconds=60)
    assert set(world.images().values()) == {OLD}
    assert set(removed(world)) == {"default-0", "default-1"}
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_a_new_image_is_tried_with_one_machine_whatever_may_be_unavailable() -> None:
    world = eight(update={"maxUnavailable": 8})
    world.bad = {NEW}
    world.upgrade()
    for _ in range(60):
        world.settle(1, seconds=60)
        assert serving(world) >= 6
    assert world.status["rejectedMachineImage"] == NEW
    assert set(removed(world)) == {"default-0", "default-1"}
    assert set(world.images().values()) == {OLD}


def test_what_hosts_could_not_do_before_counts_for_nothing_when_an_image_is_judged() -> None:
    """A mirror that was away for hours, and then one failure in the guest: it gets as many attempts as any other."""
    world = eight()
    world.missing = {NEW: "ImageFetchFailed"}
    world.upgrade()
    world.settle(30, seconds=60)
    world.missing, world.broken = {}, {"default-vm-0"}
    while not any(one.reason == "GuestUnreachable" for one in world.troubles.values()):
        world.settle(1, seconds=60)
    world.look()
    assert "rejectedMachineImage" not in world.status
    world.settle(30, seconds=60)
    assert world.status["rejectedMachineImage"] == NEW
