# SPDX-License-Identifier: BSD-2-Clause
"""Whole pools, in a simulated world that carries out plans and can crash in between."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shai_operator.reconcile import policies, pools
from shai_operator.reconcile.actions import SetFinalizer, SetStatus
from shai_operator.reconcile.members import ApplyBundle, ForgetMembers, Job, ProvisionMembers, RemoveMembers
from shai_operator.reconcile.objects import FINALIZER, Reference, name, reference
from shai_operator.reconcile.pools import ForgetReleases, StoreRelease
from tests.reconcile import builders
from tests.reconcile.builders import FOR_SEARCH, resource
from tests.reconcile.pool_world import World, kinds, revision


def settled(replicas: int = 3, **spec: object) -> World:
    world = World(replicas, **spec)
    world.settle()
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady"), world.status
    world.trail.clear()
    world.events.clear()
    return world


def counters(world: World) -> tuple[int, ...]:
    return tuple(world.status[f"{prefix}eplicas"] for prefix in ("r", "readyR", "availableR", "updatedR"))


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


# A policy changes.


def test_a_change_goes_through_in_steps() -> None:
    world = settled()
    world.define("two")
    seen = []
    for _ in range(20):
        world.settle(1)
        if world.texts() not in seen:
            seen.append(world.texts())
    assert seen == [["one"] * 3, ["two", "one", "one"], ["two"] * 3]
    assert world.of("Policy", "public")["stableRevision"] == revision("two")
    assert "candidateRevision" not in world.of("Policy", "public")
    assert len(world.stored) == 1, "releases that nothing needs are forgotten"


def test_the_change_s_effect_and_progress_are_on_the_pipeline_and_the_policy() -> None:
    world = settled()
    world.define("two")
    world.settle(3)
    pipeline, policy = world.of("Pipeline", "syse"), world.of("Policy", "public")
    assert pipeline["effect"]["usersTotal"] == 3
    assert (pipeline["rollout"]["step"], pipeline["rollout"]["steps"], pipeline["rollout"]["members"]) == (1, 2, 1)
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Progressing")
    assert (policy["stableRevision"], policy["candidateRevision"]) == (revision("one"), revision("two"))
    assert world.status["candidateRelease"] == pipeline["rollout"]["release"]
    world.effect = None  # the operator crashes
    world.settle(1)
    assert world.of("Pipeline", "syse")["effect"]["usersTotal"] == 3


def test_a_change_that_closes_too_much_is_held() -> None:
    world = settled()
    world.closed = 90
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    for kind, called in (("Pipeline", "syse"), ("Policy", "public")):
        assert world.condition(kind, called, "RolledOut") == ("False", "BlocksFlows")
    assert world.of("Pipeline", "syse")["effect"]["closedTotal"] == 90
    assert [event.reason for event in world.events] == ["BlocksFlows"]
    world.change("Pipeline", "syse", rollout={"limits": {"closedPercent": 95, "minimumSessions": 0}})
    world.settle()
    assert world.texts() == ["two"] * 3


@pytest.mark.parametrize("fault", ["denies", "refuses"])
def test_a_harmful_change_goes_back_and_the_revision_is_rejected(fault: str) -> None:
    world = settled()
    getattr(world, fault).add("two")
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    policy = world.of("Policy", "public")
    assert (policy["stableRevision"], policy["rejectedRevision"]) == (revision("one"), revision("two"))
    assert world.status["rejectedRelease"] not in ("", world.status["stableRelease"])
    for kind, called in (("Pipeline", "syse"), ("Policy", "public")):
        assert world.condition(kind, called, "RolledOut") == ("False", "RolledBack")
    assert "RolledBack" in [event.reason for event in world.events]
    spec = world.known.find("Policy", "search", "public")
    assert spec is not None
    assert spec["spec"]["text"] == "two", "a rollback never changes a spec"
    world.define("three")
    world.settle()
    assert world.texts() == ["three"] * 3
    assert "rejectedRevision" not in world.of("Policy", "public")
    assert "rejectedRelease" not in world.status


def test_revisions_are_rejected_before_the_pool_forgets_the_candidate() -> None:
    world = settled()
    world.denies.add("two")
    world.define("two")
    world.settle()
    order = kinds(world.trail)
    rejected = next(
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus) and "rejectedRevision" in action.status
    )
    forgotten = next(
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus) and "rejectedRelease" in action.status
    )
    assert rejected < forgotten
    assert order[rejected] == "SetStatus Policy public"
    back = [index for index, action in enumerate(world.trail) if isinstance(action, ApplyBundle) and index > rejected]
    assert back
    assert min(back) > forgotten


def test_a_rejected_change_of_a_task_is_not_tried_again() -> None:
    world = settled()
    world.change("Task", "search", command=["/bin/other"])
    world.look()
    candidate = world.status["candidateRelease"]
    world.harmful.add(candidate)
    world.settle()
    assert world.status["rejectedRelease"] == candidate
    assert "candidateRelease" not in world.status
    assert {machine.bundle.release.name for machine in world.machines.values() if machine.bundle} == {
        world.status["stableRelease"]
    }
    assert "rejectedRevision" not in world.of("Policy", "public"), "no policy has changed"


def test_paused_holds_and_goes_on() -> None:
    world = settled()
    rollout = world.known.find("Pipeline", "search", "syse")["spec"]["rollout"]  # type: ignore[index]
    world.change("Pipeline", "syse", rollout={**rollout, "paused": True})
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Paused")
    world.change("Pipeline", "syse", rollout=rollout)
    world.settle()
    assert world.texts() == ["two"] * 3


def test_facts_reach_everybody_at_once_and_start_no_rollout() -> None:
    world = settled()
    stable = world.status["stableRelease"]
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.look()
    applied = [action for action in world.trail if isinstance(action, ApplyBundle)]
    assert len(applied) == 3
    world.settle(2)
    assert world.status["stableRelease"] == stable
    assert "candidateRelease" not in world.status
    assert {len(machine.bundle.facts.manifests) for machine in world.machines.values() if machine.bundle} == {1}


def test_facts_reach_members_that_are_leaving() -> None:
    world = settled(replicas=3, scaleIn={"drainSeconds": 600})
    for machine in world.machines.values():
        machine.sessions = 1
    world.change("JailPool", "default", replicas=2)
    world.settle(2)
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.settle(2)
    assert len(world.machines) == 3
    assert {len(machine.bundle.facts.manifests) for machine in world.machines.values() if machine.bundle} == {1}


def test_bad_facts_are_not_blamed_on_a_change() -> None:
    world = settled()
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.refuses.add("one")  # with these facts, monitors refuse every release
    world.refuses.add("two")
    world.define("two")
    world.settle(90)
    assert world.texts() == ["one"] * 3
    assert "rejectedRevision" not in world.of("Policy", "public")
    assert world.condition("JailPool", "default", "Ready")[0] in ("True", "False")
    world.refuses.clear()
    world.settle(60)
    assert world.texts() == ["two"] * 3


def test_facts_that_turn_bad_during_a_step_are_not_blamed_on_the_change() -> None:
    world = settled()
    world.define("two")
    world.look()  # compares
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.refuses = {"one", "two"}
    world.settle(30)
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Progressing")
    world.refuses.clear()
    world.settle(60)
    assert world.texts() == ["two"] * 3


def test_a_broken_pipeline_stays_in_force() -> None:
    world = settled()
    world.change("Pipeline", "syse", tasks=["search", "serach"])
    world.settle(5)
    assert world.texts() == ["one"] * 3
    assert [action for action in world.trail if isinstance(action, ApplyBundle)] == []


def test_a_pipeline_that_is_deleted_leaves_the_members_at_once() -> None:
    world = settled()
    pipeline = world.known.find("Pipeline", "search", "syse")
    assert pipeline is not None
    world.known.remove(reference(pipeline))
    world.settle(3)
    assert [machine.bundle.release.manifests for machine in world.machines.values() if machine.bundle] == [()] * 3
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


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


@pytest.mark.parametrize(("job", "moved"), [("bringUp", True), ("provision", False)])
def test_a_bring_up_that_may_never_end_keeps_no_member_on_a_former_host(job: str, *, moved: bool) -> None:
    world = settled()
    world.hosts = ("h2",)
    observed = world.observed()
    busy = {called: replace(member, job=Job(job)) for called, member in observed.members.items()}
    plan = pools.reconcile(world.pool, replace(observed, members=busy), world.known, world.now)
    assert any(isinstance(action, ForgetMembers) for action in plan.actions) == moved


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


def test_force_gives_up_only_on_what_was_tried() -> None:
    world = settled()
    world.unreachable = {"h1"}
    world.delete(**{"shai.dev/force-delete": "true"})
    assert not [action for action in world.plan().actions if isinstance(action, ForgetMembers)]


# Several pools, large definitions, lost releases.


def test_a_text_whose_revision_has_the_name_of_another_is_never_said_to_be_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "content_hash", lambda policy: "ab" * 16 + policy["spec"]["text"].encode().hex())
    world = settled()
    assert world.condition("Policy", "public", "RolledOut") == ("True", "Complete")
    world.put(resource("Policy", "public", {"text": "two", "mode": "Enforce"}))  # no revision can have its name
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.condition("Policy", "public", "RolledOut")[0] == "False"


def test_a_policy_s_status_has_one_writer() -> None:
    world = settled()
    other = resource(
        "Pipeline", "other", {"tasks": ["search"], "pool": "second"}, creationTimestamp="2026-01-01T00:00:00Z"
    )
    conduits = world.known.find("Pipeline", "search", "syse")["spec"]["conduits"]  # type: ignore[index]
    world.put({**other, "spec": {**other["spec"], "conduits": conduits}})

    def written() -> list[str]:
        return [name(action.obj) for action in world.plan().actions if isinstance(action, SetStatus)]

    assert "public" in written(), "a pipeline without a pool that it may use has no say"
    world.put(resource("JailPool", "second", FOR_SEARCH))
    assert "public" not in written(), "the older pipeline's pool writes it"


# Which namespace a pool serves.


def claimant(world: World) -> None:
    """Have a pipeline of another namespace wait for the pool, with the same names as the running one."""
    for kind, called in (("Policy", "public"), ("Task", "search"), ("Pipeline", "syse")):
        obj = world.known.find(kind, "search", called)
        assert obj is not None
        world.known.put({**resource(kind, called, obj["spec"], namespace="other"), "status": {}})
    policy = world.known.find("Policy", "other", "public")
    assert policy is not None
    world.known.put(builders.revision(policy))


def test_a_stranger_never_inherits_a_pool() -> None:
    world = settled()
    claimant(world)
    world.settle()
    assert {name(action.obj) for action in world.trail if isinstance(action, SetStatus)} == {
        "default",
        "syse",
        "public",
    }
    assert not [action for action in world.trail if isinstance(action, StoreRelease | ApplyBundle)]
    world.known.remove(Reference("Pipeline", "search", "syse"))
    world.settle()
    assert (world.status["namespace"], world.texts()) == ("search", [""] * 3)
    stranger = world.known.find("Pipeline", "other", "syse")
    assert stranger is not None
    assert stranger["status"] == {}


@pytest.mark.parametrize("paused", [False, True])
def test_a_pool_that_changes_hands_runs_nothing_of_the_former_namespace_any_more(*, paused: bool) -> None:
    world = settled()
    claimant(world)
    own = world.known.find("Pipeline", "other", "syse")
    assert own is not None
    world.known.put({**own, "spec": {**own["spec"], "rollout": {"paused": paused, "limits": {"closedPercent": 0}}}})
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    seen = []
    for _ in range(10):
        world.look()
        seen.append({machine.bundle.release.namespace for machine in world.machines.values() if machine.bundle})
        empty = [not machine.bundle.release.manifests for machine in world.machines.values() if machine.bundle]
        if "other" in seen[-1]:
            assert all(empty) or seen[-1] == {"other"}
    assert seen[-1] == {"other"}
    assert not any("search" in namespaces and "other" in namespaces and not all(empty) for namespaces in seen)
    assert world.status["namespace"] == "other"
    assert world.of("Pipeline", "syse").get("pool") is None, "what it said of the one that lost the pool is taken back"
    own = world.known.find("Pipeline", "other", "syse")
    assert own is not None
    assert own["status"]["members"] == 3


def running_modes(world: World) -> set[str]:
    """Return the modes in which members run the pipeline."""
    bundles = [machine.bundle.release for machine in world.machines.values() if machine.bundle]
    found = [bundle.objects[key] for bundle in bundles for key in [("Pipeline", "syse")] if key in bundle.objects]
    return {pipeline["spec"].get("mode", "shai") for pipeline in found}


def beside(world: World) -> None:
    """Add a second pipeline to the pool."""
    world.put(resource("Task", "index", {"run": "Always"}))
    world.put(resource("Pipeline", "other", {"tasks": ["index"], "rollout": {"limits": {"minimumSessions": 5}}}))


HELD = {
    "Paused": {"paused": True},
    "BlocksFlows": {"limits": {"closedPercent": 0}},
    "Inconclusive": {"steps": [{"members": 1, "pauseSeconds": 0}], "limits": {"minimumSessions": 1000}},
}


@pytest.mark.parametrize("reason", HELD)
def test_no_held_rollout_keeps_a_mode_that_the_pool_allows_no_longer(reason: str) -> None:
    world = World(allowedModes=["shai", "baseline"])
    beside(world)
    world.change("Pipeline", "syse", mode="baseline")
    world.settle()
    assert running_modes(world) == {"baseline"}
    world.closed = 90 if reason == "BlocksFlows" else 0
    world.change("Pipeline", "syse", mode="shai", rollout=HELD[reason])
    world.settle()
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", reason)
    assert "baseline" in running_modes(world), "it is held, and allowed"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(2)
    assert "baseline" not in running_modes(world)
    assert all(
        ("Task", "index") in machine.bundle.release.objects for machine in world.machines.values() if machine.bundle
    )
    world.harmful.add(world.status.get("candidateRelease", ""))
    world.settle()
    assert "baseline" not in running_modes(world), "nothing goes back to it"


def test_canaries_lose_a_candidate_in_a_mode_that_the_pool_allows_no_longer() -> None:
    world = World(allowedModes=["shai", "baseline"])
    world.settle()
    slow = {"steps": [{"members": 1, "pauseSeconds": 3600}], "limits": {"minimumSessions": 5}}
    world.change("Pipeline", "syse", mode="baseline", rollout=slow)
    world.settle()
    assert running_modes(world) == {"shai", "baseline"}
    world.change("Pipeline", "syse", mode="shai", rollout={"paused": True})
    world.define("two")
    world.settle()
    assert running_modes(world) == {"shai", "baseline"}, "it is allowed as yet"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(2)
    assert running_modes(world) == {"shai"}


def first_under_way(**spec: object) -> World:
    """Return a world whose members have the first release, which is not yet stable."""
    world = World(allowedModes=["shai", "baseline"])
    world.change("Pipeline", "syse", **spec)
    while not running_modes(world):
        world.look()
    assert "stableRelease" not in world.status
    return world


def test_definitions_that_are_too_large_keep_no_first_release_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    world = first_under_way(mode="baseline")
    monkeypatch.setattr("shai_operator.reconcile.bundles.SIZE_LIMIT", 2000)
    candidate = world.status["candidateRelease"]
    world.define("".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200)))
    world.look()
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "TooLarge")
    assert (world.status["candidateRelease"], candidate in world.stored) == (candidate, True)
    assert running_modes(world) == {"baseline"}, "it is allowed as yet"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(3)
    assert running_modes(world) == set()


def test_what_is_forbidden_leaves_a_first_release_though_its_specs_are_not_checked() -> None:
    world = first_under_way(mode="baseline")
    world.unchecked = True
    world.look()
    assert running_modes(world) == {"baseline"}, "it is allowed as yet"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(3)
    assert running_modes(world) == set()


SLIPS = {
    "a task that does not exist": lambda world: world.change("Pipeline", "syse", tasks=["serach"]),
    "a text not yet checked": lambda world: world.change("Policy", "public", text="two"),
    "a deleted revision": lambda world: world.known.remove(Reference("PolicyRevision", "search", revision("one"))),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_during_the_first_rollout_stops_nothing(slip: str) -> None:
    world = first_under_way()
    candidate = world.status["candidateRelease"]
    SLIPS[slip](world)
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.status["stableRelease"] == candidate
    world = first_under_way()
    SLIPS[slip](world)
    world.known.remove(Reference("Pipeline", "search", "syse"))
    world.settle()
    assert world.texts() == [""] * 3, "a pipeline that is deleted goes"


def test_whoever_cannot_be_served_does_not_keep_the_former_namespace_in_force() -> None:
    world = settled()
    claimant(world)
    text = world.known.find("Policy", "other", "public")
    assert text is not None
    world.refuses.add(text["spec"]["text"])
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    steps = [
        number for number, action in enumerate(kinds(world.plan().actions), 1) if action == "SetStatus JailPool default"
    ]
    world.look(steps[0])  # a crash, before any request to members
    world.settle()
    assert world.texts() == [""] * 3, "all members have let go of it"


def test_a_pool_that_serves_nobody_runs_nothing() -> None:
    world = settled()
    world.change("JailPool", "default", allowedNamespaces={"names": []})
    world.settle()
    assert (world.status["namespace"], world.texts()) == ("", [""] * 3)


def test_definitions_that_cannot_be_kept_are_not_rolled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled()
    monkeypatch.setattr("shai_operator.reconcile.bundles.SIZE_LIMIT", 10)
    world.define("two")
    actions = world.plan().actions
    assert not [action for action in actions if isinstance(action, StoreRelease | ApplyBundle)]
    world.look()
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "TooLarge")


def test_a_lost_release_is_stored_again() -> None:
    world = settled()
    world.stored.clear()
    world.look()
    assert set(world.stored) == {world.status["stableRelease"]}


def test_releases_are_forgotten_only_after_the_status_names_others() -> None:
    world = settled()
    world.define("two")
    world.settle()
    forgotten = [index for index, action in enumerate(world.trail) if isinstance(action, ForgetReleases)]
    promoted = [
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus) and action.status.get("stableRelease") == world.status["stableRelease"]
    ]
    assert forgotten
    assert min(promoted) < min(forgotten)


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
        world.effect = None if number % 3 else world.effect
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
    assert pools.observations(world.pool) == {}


def test_a_pool_deleted_before_its_first_member_goes_at_once() -> None:
    world = World()
    world.look(1)
    assert isinstance(world.trail[0], SetFinalizer)
    world.delete()
    world.look()
    assert world.pool["metadata"]["finalizers"] == []
