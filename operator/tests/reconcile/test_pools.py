# SPDX-License-Identifier: BSD-2-Clause
"""Whole pools, in a simulated world that carries out plans and can crash in between: made, scaled, healed, deleted."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shai_operator.reconcile import pools
from shai_operator.reconcile.actions import Emit, SetFinalizer, SetStatus
from shai_operator.reconcile.members import Failure, ForgetMembers, Job, ProvisionMembers, RemoveMembers
from shai_operator.reconcile.objects import FINALIZER
from tests.reconcile.pool_world import World, counters, kinds, revision, settled

# A pool comes up.


def test_a_new_pool_comes_up_and_says_so() -> None:
    world = World()
    world.look()
    assert world.condition("JailPool", "default", "Ready")[0] == "False"
    assert world.condition("JailPool", "default", "Progressing") == ("True", "Provisioning")
    world.settle()
    assert counters(world) == (3, 3, 3, 3)
    assert world.status["selector"] == "shai.dev/pool=default"
    assert [row["name"] for row in world.status["members"]] == ["default-0", "default-1", "default-2"]
    for kind in ("Ready", "Provisioned"):
        assert world.condition("JailPool", "default", kind)[0] == "True"
    assert world.condition("JailPool", "default", "Progressing") == ("False", "Complete")
    assert world.texts() == ["one"] * 3
    assert world.of("Policy", "public")["stableRevision"] == revision("one")
    assert world.condition("Policy", "public", "RolledOut") == ("True", "Complete")
    pipeline = world.of("Pipeline", "syse")
    assert (pipeline["pool"], pipeline["members"], "candidate" in pipeline) == ("default", 3, False)
    assert pipeline["bundle"].startswith("hash of ")
    assert world.condition("Pipeline", "syse", "RolledOut") == ("True", "Complete")


def test_a_settled_pool_is_left_alone() -> None:
    world = settled()
    before = json.dumps(world.status)
    for _ in range(3):
        actions = world.plan().actions
        assert {type(action) for action in actions} <= {SetStatus}
        world.look()
    assert json.dumps(world.status) == before


def test_a_member_is_remembered_before_it_is_made() -> None:
    order = kinds(World().plan().actions)
    assert order.index("SetFinalizer") < order.index("StoreRelease")
    assert order.index("StoreRelease") < order.index("SetStatus JailPool default")
    assert order.index("SetStatus JailPool default") < order.index("ProvisionMembers")


def test_without_room_it_says_so_and_makes_what_it_can() -> None:
    world = World()
    world.hosts = ()
    world.settle(3)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "TooFewHosts")
    assert world.condition("JailPool", "default", "Ready") == ("False", "TooFewHosts")


def test_a_host_that_does_not_answer_is_told_once() -> None:
    world = World()
    world.unreachable = {"h1"}
    world.settle(6)
    assert world.condition("JailPool", "default", "Provisioned") == ("False", "HostUnreachable")
    assert [event.reason for event in world.events] == ["HostUnreachable"] * 3, "once for each member"


# Members are added and removed.


def test_scaling_out_keeps_the_others_as_they_are() -> None:
    world = settled(2)
    world.change("JailPool", "default", replicas=4)
    world.settle(6)
    assert counters(world) == (4, 4, 4, 4)
    made = [place.ordinal for action in world.trail if isinstance(action, ProvisionMembers) for place in action.members]
    assert made == [2, 3]


def test_scaling_in_drains_first() -> None:
    world = settled()
    world.machines["default-2"].sessions = 4
    world.change("JailPool", "default", replicas=1)
    world.settle(2)
    assert sorted(world.machines) == ["default-0", "default-2"], "the one without sessions is gone"
    row = world.status["members"][-1]
    assert (row["name"], row["reason"], row["ready"]) == ("default-2", "Draining", "False")
    assert counters(world) == (2, 1, 1, 1)
    world.settle(3)
    assert sorted(world.machines) == ["default-0"]
    assert counters(world) == (1, 1, 1, 1)


def test_a_draining_member_comes_back_as_it_is() -> None:
    world = settled()
    world.machines["default-2"].sessions = 4
    world.change("JailPool", "default", replicas=2)
    world.look()
    world.change("JailPool", "default", replicas=3)
    world.settle(3)
    assert counters(world) == (3, 3, 3, 3)
    assert not [action for action in world.trail if isinstance(action, ProvisionMembers | RemoveMembers)]


def test_a_changed_configuration_goes_member_by_member() -> None:
    world = settled()
    world.digest = "c2"
    world.settle(8)
    batches = [len(action.members) for action in world.trail if isinstance(action, ProvisionMembers)]
    assert batches == [1, 1, 1]
    assert {machine.configuration for machine in world.machines.values()} == {"c2"}


def test_a_dead_member_is_mended_after_its_threshold() -> None:
    world = settled(healing={"failureThreshold": 3})
    world.machines["default-1"].alive = False
    world.settle(2)
    assert not [action for action in world.trail if isinstance(action, ProvisionMembers)]
    world.settle(2)
    (action,) = [action for action in world.trail if isinstance(action, ProvisionMembers)]
    assert (action.cause, [place.ordinal for place in action.members]) == ("not answering", [1])
    assert [event.reason for event in world.events] == ["Unreachable", "MemberReady"]


def test_a_member_whose_host_left_the_pool_is_given_up_and_made_anew() -> None:
    world = settled()
    world.hosts = ("h2",)
    world.settle(4)
    assert {machine.host for machine in world.machines.values()} == {"h2"}
    assert "/srv/default-0" in next(event.message for event in world.events if event.reason == "MemberGivenUp")


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize(("job", "given_up"), [(None, True), ("bringUp", True), ("provision", False), ("apply", False)])
def test_a_member_on_a_former_host_is_given_up_with_an_event_when_nothing_is_done_there_any_more(
    job: str | None, *, given_up: bool, installed: bool
) -> None:
    """A bring-up may never end, and keeps no member there. One that was being installed has left something, too."""
    world = settled()
    world.hosts = ("h2",)
    observed = world.observed()
    busy = {
        called: replace(member, job=Job(job) if job else None, configuration=member.configuration if installed else "")
        for called, member in observed.members.items()
    }
    plan = pools.reconcile(world.pool, replace(observed, members=busy), world.known, world.now)
    forgotten = [place.name for action in plan.actions if isinstance(action, ForgetMembers) for place in action.members]
    told = [action for action in plan.actions if isinstance(action, Emit) and action.reason == "MemberGivenUp"]
    assert (sorted(forgotten), len(told)) == ((sorted(busy), len(busy)) if given_up else ([], 0))
    written = next(action.status for action in plan.actions if isinstance(action, SetStatus))
    hosts = {row["name"]: row["host"] for row in written["members"]}
    assert hosts == ({} if given_up else dict.fromkeys(busy, "h1")), "one that is worked on stays where it is"
    assert not [action for action in plan.actions if isinstance(action, ProvisionMembers)]
    first = next(index for index, action in enumerate(plan.actions) if isinstance(action, SetStatus))
    assert all(plan.actions.index(event) < first for event in told), "a crash between them costs no event"


# The pool is deleted.


def test_deletion_removes_everything_and_then_lets_go() -> None:
    world = settled()
    world.machines["default-0"].sessions = 1
    world.delete()
    world.settle(2)
    assert sorted(world.machines) == ["default-0"]
    assert world.pool["metadata"]["finalizers"] == [FINALIZER]
    assert world.condition("JailPool", "default", "Ready") == ("False", "Deleting")
    world.settle(3)
    assert (world.machines, world.stored, world.pool["metadata"]["finalizers"]) == ({}, {}, [])
    assert world.plan().actions == []


def test_deletion_waits_for_a_host_that_does_not_answer_and_says_how_to_force_it() -> None:
    world = settled()
    world.unreachable = {"h1"}
    world.delete()
    world.settle(5)
    assert world.pool["metadata"]["finalizers"] == [FINALIZER]
    ready = next(condition for condition in world.status["conditions"] if condition["type"] == "Ready")
    assert (ready["reason"], "kubectl annotate jailpool default shai.dev/force-delete=true" in ready["message"]) == (
        "HostUnreachable",
        True,
    )
    world.delete(**{"shai.dev/force-delete": "true"})
    world.settle(3)
    assert world.pool["metadata"]["finalizers"] == []
    assert len([action for action in world.trail if isinstance(action, ForgetMembers)]) == 3
    assert len([event for event in world.events if event.reason == "MemberGivenUp"]) == 3


def test_deletion_does_not_take_a_failed_installation_for_a_removal() -> None:
    world = settled()
    world.delete(**{"shai.dev/force-delete": "true"})
    observed = world.observed()
    last = replace(observed.members["default-2"], failed=Failure("GuestUnreachable", "no answer", world.now))
    plan = pools.reconcile(
        world.pool, replace(observed, members={**observed.members, "default-2": last}), world.known, world.now
    )
    written = next(action.status for action in plan.actions if isinstance(action, SetStatus))
    ready = next(condition for condition in written["conditions"] if condition["type"] == "Ready")
    assert (ready["reason"], "cannot be removed" in ready["message"]) == ("Deleting", False)
    going = [place.name for action in plan.actions if isinstance(action, RemoveMembers) for place in action.members]
    assert "default-2" in going, "and it does not wait until the installation would be tried again"
    assert not [action for action in plan.actions if isinstance(action, ForgetMembers)]


def test_force_does_not_give_up_on_a_removal_that_was_not_tried() -> None:
    world = settled()
    world.delete(**{"shai.dev/force-delete": "true"})
    observed = world.observed()
    failed = Failure("Cancelled", "the API server did not answer", world.now, removal=True)
    last = replace(observed.members["default-2"], draining_since=world.now, failed=failed)
    for seen, given_up in ((last, False), (replace(last, failed=replace(failed, reason="HostUnreachable")), True)):
        plan = pools.reconcile(
            world.pool, replace(observed, members={**observed.members, "default-2": seen}), world.known, world.now
        )
        assert any(isinstance(action, ForgetMembers) for action in plan.actions) is given_up


def test_deletion_says_what_it_waits_for() -> None:
    world = settled()
    world.delete()
    waits = "waits for its turn on host h1, which JailPool other, an installation has"
    observed = world.observed()
    removals = {
        name: replace(member, job=Job("remove", waiting=waits if name == "default-1" else ""))
        for name, member in observed.members.items()
    }
    plan = pools.reconcile(world.pool, replace(observed, members=removals), world.known, world.now)
    written = next(action.status for action in plan.actions if isinstance(action, SetStatus))
    ready = next(condition for condition in written["conditions"] if condition["type"] == "Ready")
    assert ready["reason"] == "Deleting"
    assert ready["message"] == f"the pool is being deleted; 3 members are left; default-1 {waits}"


@pytest.mark.parametrize(("kind", "replicas", "reason"), [("provision", 3, "Provisioning"), ("remove", 2, "Draining")])
def test_who_has_the_host_is_told_the_pool_and_no_author(kind: str, replicas: int, reason: str) -> None:
    world = settled()
    world.put({**world.pool, "spec": {**world.pool["spec"], "replicas": replicas}})
    waits = "waits for its turn on host h1, which JailPool other, an installation has"
    observed = world.observed()
    last = replace(observed.members["default-2"], job=Job(kind, waiting=waits))
    plan = pools.reconcile(
        world.pool, replace(observed, members={**observed.members, "default-2": last}), world.known, world.now
    )
    written = {action.obj["kind"]: action.status for action in plan.actions if isinstance(action, SetStatus)}
    found = next(entry for entry in written["JailPool"]["conditions"] if entry["type"] == "Progressing")
    assert (found["reason"], found["message"].endswith(f"; default-2 {waits}")) == (reason, True)
    assert "waits for its turn on its host" in written["JailPool"]["members"][2]["message"]
    assert "JailPool other" not in json.dumps(written["Pipeline"])


def test_force_gives_up_only_on_what_was_tried() -> None:
    world = settled()
    world.unreachable = {"h1"}
    world.delete(**{"shai.dev/force-delete": "true"})
    assert not [action for action in world.plan().actions if isinstance(action, ForgetMembers)]


# Crashes.


CRASHES = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 10, 40])), max_size=25)


@settings(max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(crashes=CRASHES, fault=st.sampled_from(["", "denies", "refuses"]), replicas=st.integers(1, 4))
def test_a_crash_after_any_action_changes_nothing_in_the_end(
    crashes: list[tuple[int, int]], fault: str, replicas: int
) -> None:
    world = World(3)
    for number, (actions, seconds) in enumerate(crashes):
        if number == 8:
            world.settle(8)  # before the first release is in force, there is no release to roll back to
            if fault:
                getattr(world, fault).add("two")
            world.define("two")
            world.change("JailPool", "default", replicas=replicas)
        world.look(actions)
        world.effects = {} if number % 3 else world.effects
        world.visit(seconds)
        world.now += timedelta(seconds=seconds)
    changed = len(crashes) > 8
    world.settle(150)
    expected = "one" if fault or not changed else "two"
    size = replicas if changed else 3
    assert world.texts() == [expected] * size
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    assert world.condition("Policy", "public", "RolledOut")[1] == ("RolledBack" if fault and changed else "Complete")
    world.delete()
    world.look(crashes[0][0] if crashes else 3)
    world.settle(6)
    assert (world.machines, world.stored, world.pool["metadata"]["finalizers"]) == ({}, {}, [])


def test_a_pool_that_was_never_made_has_nothing_to_let_go() -> None:
    world = World()
    world.delete()
    assert world.plan().actions == []
    assert pools.observations(world.pool, world.known, {}) == {}


def test_a_pool_deleted_before_its_first_member_goes_at_once() -> None:
    world = World()
    world.look(1)
    assert isinstance(world.trail[0], SetFinalizer)
    world.delete()
    world.look()
    assert world.pool["metadata"]["finalizers"] == []
