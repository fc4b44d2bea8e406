# SPDX-License-Identifier: BSD-2-Clause
"""The namespaces of a pool, in the simulated world: shared, withdrawn, given up, deleted and made again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from shai_operator.reconcile import definitions
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.members import ApplyBundle, BringUp, RemoveMembers
from shai_operator.reconcile.objects import Reference, namespace
from shai_operator.reconcile.pools import StoreRelease
from shai_operator.reconcile.tenancy import DISCARD
from tests.reconcile.builders import space, tenant, valid
from tests.reconcile.pool_world import World, counters, settled

BOTH = {"allowedNamespaces": {"names": ["search", "other"]}}
WITHDRAWN = ("False", "NamespaceWithdrawn")


def shared(replicas: int = 4, **spec: Any) -> World:
    """Return a world whose pool two namespaces share; what happened until then is forgotten."""
    world = World(replicas, **{**BOTH, **spec})
    world.join("other", text="theirs")
    world.settle()
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady"), world.status
    world.trail.clear()
    world.events.clear()
    return world


def ready(world: World, called: str) -> tuple[str, str, str]:
    """Return status, reason and message of the condition Ready that a namespace's pipeline gets."""
    pipeline = world.known.find("Pipeline", called, "syse")
    assert pipeline is not None
    plan = definitions.pipeline(pipeline, valid(world.known), world.known, world.now)
    (status,) = (action.status for action in plan.actions if isinstance(action, SetStatus))
    found = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    return found["status"], found["reason"], found["message"]


def test_a_stranger_never_inherits_a_pool() -> None:
    world = settled()
    world.join("other")
    world.settle()
    written = [action.obj for action in world.trail if isinstance(action, SetStatus)]
    assert {namespace(obj) for obj in written} == {"", "search"}
    assert not [action for action in world.trail if isinstance(action, StoreRelease | ApplyBundle)]
    world.known.remove(Reference("Pipeline", "search", "syse"))
    world.settle()
    assert (world.status["serves"], world.texts()) == ("search", [""] * 3)
    assert world.of("Pipeline", "syse", "other") == {}


# Several namespaces share a pool.


def test_namespaces_share_a_pool_and_each_has_members_of_its_own() -> None:
    world = shared()
    assert world.owners() == dict(
        zip([f"default-{number}" for number in range(4)], ["search", "other"] * 2, strict=True)
    )
    assert world.owners() == world.runs()
    assert world.texts() == ["one", "theirs"] * 2
    assert (world.status["serves"], counters(world)) == ("search, other", (4, 4, 4, 4))
    for called in ("search", "other"):
        share = world.share(called)
        assert (share["replicas"], share["readyReplicas"], share["updatedReplicas"]) == (2, 2, 2)
        assert world.of("Pipeline", "syse", called)["members"] == 2
        assert ready(world, called)[:2] == ("True", "Complete")
    assert world.share("search")["stableRelease"] != world.share("other")["stableRelease"]


def test_a_member_is_assigned_before_anything_of_a_namespace_gets_there() -> None:
    world = World(2, **BOTH)
    world.join("other", text="theirs")
    for _ in range(30):
        before = world.owners() if "members" in world.status else {}
        actions = world.plan().actions
        for action in actions:
            if isinstance(action, ApplyBundle | BringUp):
                assert before.get(action.member.name), "the status has the assignment, and not only the plan"
        world.look()
        world.visit(6)


def test_a_namespace_that_uses_nothing_yet_has_its_part_kept_free() -> None:
    world = World(4, **BOTH)
    world.known.put(space("other"))
    world.settle()
    assert sorted(world.owners().values()) == ["", "", "search", "search"]
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")
    world.join("other", text="theirs")
    world.settle()
    assert sorted(world.runs().values()) == ["other", "other", "search", "search"]


def test_the_only_member_is_for_whoever_uses_the_pool() -> None:
    world = World(1, allowedNamespaces={"names": ["other", "search"]})
    world.known.put(space("other"))
    world.settle()
    assert list(world.owners().values()) == ["search"]


def test_a_selector_finds_namespaces_and_one_without_a_pipeline_gets_nothing() -> None:
    world = World(3, allowedNamespaces={"selector": {"matchLabels": {"team": "a"}}})
    for called, team in (("idle", "a"), ("theirs", "b"), ("ours", "a")):
        world.join(called, team=team)
    world.known.remove(Reference("Pipeline", "idle", "syse"))
    world.settle()
    assert set(world.owners().values()) == {"ours"}
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_a_namespace_that_comes_later_takes_nobody_s_members_and_says_what_it_lacks() -> None:
    world = settled(2)
    world.join("other", text="theirs")
    world.change("JailPool", "default", **BOTH)
    world.settle()
    assert set(world.runs().values()) == {"search"}
    assert ready(world, "other") == (
        "False",
        "NoMembers",
        "JailPool default has no member for this namespace; its owner can raise spec.replicas",
    )
    assert [event.reason for event in world.events if event.type == "Warning"] == ["NoMembers"]
    world.change("JailPool", "default", replicas=3)
    world.settle()
    assert sorted(world.runs().values()) == ["other", "search", "search"]
    assert ready(world, "other")[:2] == ("True", "Complete")


def test_a_pipeline_without_a_member_that_serves_it_is_not_ready() -> None:
    world = settled(2)
    for machine in world.machines.values():
        machine.alive = False
    world.settle(2)
    assert ready(world, "search")[:2] == ("False", "MembersNotReady")


def test_scaling_in_takes_from_the_namespace_that_has_most() -> None:
    world = shared(3)
    world.change("JailPool", "default", replicas=5)
    world.settle()
    assert sorted(world.runs().values()) == ["other", "other", "search", "search", "search"]
    for replicas, left in ((4, ["other", "other", "search", "search"]), (2, ["other", "search"])):
        world.change("JailPool", "default", replicas=replicas)
        world.settle(6)
        assert sorted(world.runs().values()) == left


# What one namespace does has no effect on another one.


def held_up(world: World, how: str) -> None:
    """Have the namespace other do something that would hold a rollout up."""
    pipeline = world.known.find("Pipeline", "other", "syse")
    assert pipeline is not None
    match how:
        case "paused":
            world.known.put({**pipeline, "spec": {**pipeline["spec"], "rollout": {"paused": True}}})
            world.define("theirs too", "other")
        case "not checked":
            world.unchecked = {"other"}
        case "refused":
            world.refuses.add("theirs too")
            world.define("theirs too", "other")
        case "denies":
            world.denies.add("theirs too")
            world.define("theirs too", "other")
        case "gone":
            world.known.remove(Reference("Task", "other", "search"))


@pytest.mark.parametrize("how", ["paused", "not checked", "refused", "denies", "gone"])
def test_what_holds_up_one_namespace_holds_up_no_other(how: str) -> None:
    world = shared()
    held_up(world, how)
    world.define("two")
    world.settle()
    assert [text for called, text in zip(world.runs().values(), world.texts(), strict=True) if called == "search"] == [
        "two",
        "two",
    ]
    assert world.condition("Policy", "public", "RolledOut") == ("True", "Complete")
    assert set(world.texts()) == {"two", "theirs"}
    search = json.dumps([world.of("Pipeline", "syse"), world.of("Policy", "public")])
    other = json.dumps([world.of("Pipeline", "syse", "other"), world.of("Policy", "public", "other")])
    assert "other" not in search
    assert "namespace search" not in other


def test_definitions_of_one_namespace_that_are_too_large_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = shared()
    monkeypatch.setattr("shai_operator.reconcile.bundles.SIZE_LIMIT", 3000)
    world.define("".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200)), "other")
    world.define("two")
    world.settle()
    assert set(world.texts()) == {"two", "theirs"}
    assert next(
        entry["reason"] for entry in world.of("Pipeline", "syse", "other")["conditions"] if entry["type"] == "RolledOut"
    ) == ("TooLarge")


def test_a_rollout_s_steps_are_of_the_namespace_s_members() -> None:
    world = shared(8)
    half = [{"members": "50%", "pauseSeconds": 1000}]
    world.change("Pipeline", "syse", rollout={"steps": half, "limits": {"minimumSessions": 5}})
    world.define("two")
    world.settle(6)
    assert sorted(world.texts()) == ["one", "one", "theirs", "theirs", "theirs", "theirs", "two", "two"]
    assert world.share("other").get("candidateRelease") is None
    assert world.share()["rollout"]["members"] == 2
    assert [event.message.partition(":")[0] for event in world.events if event.reason == "RolloutBegun"] == [
        "namespace search"
    ]


# A namespace may not use the pool any more.


@pytest.mark.parametrize("hold", ["", "paused", "candidate", "not checked"])
def test_members_of_a_namespace_that_is_withdrawn_run_nothing_and_keep_their_data(hold: str) -> None:
    world = shared()
    if hold == "candidate":
        slow = {"steps": [{"members": 1, "pauseSeconds": 3600}], "limits": {"minimumSessions": 5}}
        world.change("Pipeline", "syse", rollout=slow)
        world.define("two")
        world.settle(6)
        assert "two" in world.texts()
    elif hold:
        pipeline = world.known.find("Pipeline", "search", "syse")
        assert pipeline is not None
        world.change("Pipeline", "syse", rollout={"paused": True})
        world.define("two")
        world.unchecked = {"search"} if hold == "not checked" else set()
    machines = dict(world.machines)
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.look()
    assert set(world.runs().values()) == {"", "other"}, "at once"
    world.settle()
    assert world.machines == machines, "nothing is removed, and nothing installed"
    assert sorted(world.owners().values()) == ["other", "other", "search", "search"]
    rows = [row for row in world.status["members"] if row["namespace"] == "search"]
    assert {(row["ready"], row["reason"]) for row in rows} == {WITHDRAWN}
    assert world.condition("JailPool", "default", "Ready") == WITHDRAWN
    share = world.share("search")
    assert (share["replicas"], share["readyReplicas"], set(share) & {"stableRelease", "candidateRelease"}) == (
        2,
        0,
        set(),
    )
    assert DISCARD in share["withdrawn"]
    assert "pool" not in world.of("Pipeline", "syse"), "what was said of it is taken back"
    assert ready(world, "search")[1] == "NamespaceNotAllowed"
    assert ready(world, "other")[:2] == ("True", "Complete")


def test_members_that_are_drained_run_nothing_of_a_namespace_that_is_withdrawn() -> None:
    world = shared(2)
    for machine in world.machines.values():
        machine.sessions = 3
    world.change("JailPool", "default", replicas=0)
    world.look()
    assert set(world.runs().values()) == {"search", "other"}
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.look()
    assert set(world.runs().values()) == {"", "other"}


def test_a_namespace_that_is_allowed_again_goes_on_with_its_data() -> None:
    world = shared()
    machines = dict(world.machines)
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.settle()
    world.change("JailPool", "default", **BOTH)
    world.settle()
    assert world.machines == machines
    assert sorted(world.runs().values()) == ["other", "other", "search", "search"]
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_another_namespace_gets_members_only_when_their_data_are_given_up() -> None:
    world = settled(2)
    world.join("other", text="theirs")
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.settle()
    assert (set(world.runs().values()), ready(world, "other")[1]) == ({""}, "NoMembers")
    former = list(world.machines.values())
    world.annotate(DISCARD, "search")
    world.settle()
    assert set(world.runs().values()) == {"other"}
    assert not [machine for machine in world.machines.values() if any(machine is old for old in former)]
    assert {frozenset(machine.written) for machine in world.machines.values()} == {frozenset({tenant("other")})}
    assert DISCARD not in world.pool["metadata"]["annotations"], "what is done is taken out"


def test_members_are_given_up_only_of_a_namespace_that_may_not_use_the_pool() -> None:
    world = shared()
    world.annotate(DISCARD, "search, other,unknown")
    world.settle(4)
    assert not [action for action in world.trail if isinstance(action, RemoveMembers)]
    assert DISCARD not in world.pool["metadata"]["annotations"], "one that is withdrawn later is not meant"
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.settle(4)
    assert not [action for action in world.trail if isinstance(action, RemoveMembers)]


def test_members_whose_data_are_given_up_are_drained_and_cost_no_other_member() -> None:
    world = shared()
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.settle()
    others = {called: machine for called, machine in world.machines.items() if world.owners()[called] == "other"}
    world.annotate(DISCARD, "search")
    world.change("JailPool", "default", replicas=3)
    world.settle()
    assert set(world.runs().values()) == {"other"}
    assert others.items() <= world.machines.items()
    assert counters(world) == (3, 3, 3, 3)


def test_a_namespace_that_is_made_again_is_another_one() -> None:
    world = shared()
    machines = dict(world.machines)
    world.leave("search")
    world.look()
    assert set(world.runs().values()) == {"", "other"}
    world.join("search", number=2, text="a stranger's")
    world.settle()
    assert world.machines == machines
    assert "a stranger's" not in world.texts()
    assert ready(world, "search")[1] == "NoMembers"
    said = next(entry["withdrawn"] for entry in world.status["namespaces"] if entry["uid"] == tenant("search").uid)
    assert "was deleted, and another one has this name now" in said
    assert "Allow it again" not in said
    assert world.share("search", 2)["replicas"] == 0
    world.annotate(DISCARD, "search")
    world.settle()
    assert sorted(world.texts()) == ["a stranger's", "a stranger's", "theirs", "theirs"]
    for machine in world.machines.values():
        assert machine.written in ({tenant("search", 2)}, {tenant("other")})


def test_a_namespace_without_members_leaves_no_release() -> None:
    world = shared()
    world.change("JailPool", "default", allowedNamespaces={"names": ["other"]})
    world.settle()
    assert {release.namespace for release in world.stored.values()} == {"other"}


@pytest.mark.parametrize("given", [{}, {"names": []}])
def test_a_pool_that_serves_nobody_runs_nothing(given: Any) -> None:
    world = settled()
    world.change("JailPool", "default", allowedNamespaces=given)
    world.settle()
    assert (world.status["serves"], world.texts()) == ("search", [""] * 3)
    assert world.status["readyReplicas"] == 0


# The status is lost.


def test_members_go_on_when_the_status_is_lost_and_it_is_known_whose_they_are() -> None:
    world = settled()
    machines = dict(world.machines)
    world.lose_status()
    world.settle()
    assert (world.machines, world.texts(), counters(world)) == (machines, ["one"] * 3, (3, 3, 3, 3))


def test_no_namespace_gets_a_member_with_data_of_which_it_is_not_known_whose_they_are() -> None:
    world = shared(2, allowedNamespaces={"names": ["search", "other"]})
    before = {called: set(machine.written) for called, machine in world.machines.items()}
    world.lose_status()
    world.change("JailPool", "default", allowedNamespaces={"names": ["other", "search"]})
    world.settle()
    assert {called: machine.written for called, machine in world.machines.items()} == before
    assert set(world.runs().values()) == {""}
    assert {(row["ready"], row["reason"]) for row in world.status["members"]} == {WITHDRAWN}
    assert "does not say whose they are" in world.status["members"][0]["message"]
    world.annotate(DISCARD, "search,other")
    world.settle()
    assert world.runs() == world.owners()
    assert set(world.runs().values()) == {"search", "other"}
    assert all(len(machine.written) == 1 for machine in world.machines.values())


# The status of an earlier version.


def downgrade(world: World, called: str = "search") -> None:
    """Give the pool the status that an earlier version of the operator wrote."""
    share = world.share(called)
    kept = {
        key: share[key] for key in share if key in {"stableRelease", "candidateRelease", "rejectedRelease", "rollout"}
    }
    rows = [
        {key: text for key, text in row.items() if not key.startswith("namespace")} for row in world.status["members"]
    ]
    without = {key: value for key, value in world.status.items() if key not in {"namespaces", "serves"}}
    world.known.put({**world.pool, "status": {**without, "members": rows, "namespace": called, **kept}})
    world.owned.clear()


@pytest.mark.parametrize("without", ["", "namespace", "allowedNamespaces"])
def test_an_upgrade_keeps_the_namespace_its_members_and_its_rollout(without: str) -> None:
    world = settled()
    slow = {"steps": [{"members": 1, "pauseSeconds": 600}], "limits": {"minimumSessions": 5}}
    world.change("Pipeline", "syse", rollout=slow)
    world.define("two")
    world.settle(6)
    before = world.share()
    assert before["candidateRelease"]
    downgrade(world)
    if without == "namespace":
        world.status.pop("namespace")
    if without:
        spec = {key: value for key, value in world.pool["spec"].items() if key != "allowedNamespaces"}
        world.known.put({**world.pool, "spec": spec})
    world.join("other")
    world.trail.clear()
    world.look()
    assert set(world.owners().values()) == {"search"}
    assert world.share()["stableRelease"] == before["stableRelease"]
    if without != "namespace":  # it was not known whose the pool is before its members had been looked at
        assert world.share()["candidateRelease"] == before["candidateRelease"]
        assert world.share()["rollout"]["canaries"] == before["rollout"]["canaries"]
        assert world.share()["rollout"]["since"] == before["rollout"]["since"]
        assert not [action for action in world.trail if isinstance(action, ApplyBundle)]
    assert not [action for action in world.trail if isinstance(action, RemoveMembers)]
    world.settle(80)
    assert world.texts() == ["two"] * 3
    assert set(world.runs().values()) == {"search"}


def test_an_upgrade_gives_the_members_of_a_namespace_that_is_gone_to_nobody() -> None:
    world = settled()
    downgrade(world)
    world.join("other", text="theirs")
    world.leave("search")
    world.change("JailPool", "default", **BOTH)
    world.settle()
    assert set(world.owners().values()) == {"search"}
    assert set(world.runs().values()) == {""}
    world.join("search", number=2, text="a stranger's")
    world.settle()
    assert set(world.runs().values()) == {""}


def test_an_upgraded_pool_that_says_nothing_keeps_its_namespace_without_members() -> None:
    world = settled()
    world.change("JailPool", "default", replicas=0)
    world.settle()
    downgrade(world)
    spec = {key: value for key, value in world.pool["spec"].items() if key != "allowedNamespaces"}
    world.known.put({**world.pool, "spec": {**spec, "replicas": 1}})
    world.join("other", text="theirs")
    world.settle()
    assert set(world.runs().values()) == {"search"}
