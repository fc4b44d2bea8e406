# SPDX-License-Identifier: BSD-2-Clause
"""Modes that a pool allows no longer, in the simulated world: nothing keeps them in force."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from shai_operator.reconcile import references
from shai_operator.reconcile.bundles import manifest
from shai_operator.reconcile.objects import Reference, name, reference
from tests.reconcile.builders import resource, revision
from tests.reconcile.pool_world import World, first_under_way, running_modes


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
    world.harmful.add(world.share().get("candidateRelease", ""))
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


def test_definitions_that_are_too_large_keep_no_first_release_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    world = first_under_way(mode="baseline")
    monkeypatch.setattr("shai_operator.reconcile.bundles.SIZE_LIMIT", 2000)
    candidate = world.share()["candidateRelease"]
    world.define("".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200)))
    world.look()
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "TooLarge")
    assert (world.share()["candidateRelease"], candidate in world.stored) == (candidate, True)
    assert running_modes(world) == {"baseline"}, "it is allowed as yet"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(3)
    assert running_modes(world) == set()


def test_what_is_forbidden_leaves_a_first_release_though_its_specs_are_not_checked() -> None:
    world = first_under_way(mode="baseline")
    world.unchecked = {"search"}
    world.look()
    assert running_modes(world) == {"baseline"}, "it is allowed as yet"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(3)
    assert running_modes(world) == set()


def of_two(chosen: str = "") -> World:
    """Return a world in which a pipeline in mode baseline runs beside one that has choices."""
    world = World(1, allowedModes=["shai", "baseline"])
    mine = resource("Policy", "mine", {"text": "m", "mode": "Enforce"})
    world.put(mine)
    world.put({**revision(mine), "status": {}})
    choices = {"choices": [{"by": "alice", "policy": {"name": chosen}}]} if chosen else {}
    paths = [{"path": "/b/**", "policy": {"name": "public"}, **choices}]
    documents = {"name": "documents", "kind": "file", "ingress": True, "paths": paths}
    world.put(resource("Task", "index", {"run": "Always"}))
    world.put(resource("Pipeline", "other", {"tasks": ["index"], "conduits": [documents]}))
    paths = [{"path": "/a/**", "policy": {"name": "mine"}}]
    world.change("Pipeline", "syse", mode="baseline", conduits=[{"name": "documents", "kind": "file", "paths": paths}])
    world.settle()
    assert running(world) == {"syse", "other"}
    return world


def running(world: World) -> set[str]:
    """Return the pipelines that members run."""
    bundles = [machine.bundle.release for machine in world.machines.values() if machine.bundle]
    return {name(pipeline) for release in bundles for pipeline in release.of_kind("Pipeline")}


def test_no_choice_of_another_pipeline_keeps_a_mode_that_the_pool_allows_no_longer() -> None:
    world = of_two(chosen="mine")
    world.change("JailPool", "default", allowedModes=["shai"])
    world.settle(3)
    assert running(world) == {"other"}
    assert world.condition("Pipeline", "other", "RolledOut") == ("True", "Complete")


@pytest.mark.parametrize("away", [False, True], ids=["refused", "away"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_member_that_does_not_take_what_is_left_runs_nothing(*, away: bool, restarts: bool) -> None:
    """Its authors decide on what else is in a bundle, so nothing there keeps in force what the pool does not allow."""
    world = of_two()
    (world.away if away else world.refuses).add("late")
    world.put(resource("FactSource", "late", {"inline": []}))
    world.settle(3)
    assert running(world) == {"syse", "other"}, "it is allowed as yet, and the facts before these stay"
    world.change("JailPool", "default", allowedModes=["shai"])
    world.look()
    if restarts:
        for machine in world.machines.values():
            machine.refused.clear()
    world.settle(4)
    assert running(world) == set()
    world.settle(60)
    assert running(world) == set(), "it stays so, also when the bundle is tried again"
    world.away.clear()
    world.refuses.clear()
    world.settle(61)
    assert running(world) == {"other"}


def test_what_a_member_runs_and_nobody_knows_may_be_what_the_pool_does_not_allow() -> None:
    world = of_two()
    world.refuses.add("late")
    world.put(resource("FactSource", "late", {"inline": []}))
    world.change("JailPool", "default", allowedModes=["shai"])
    for machine in world.machines.values():
        assert machine.bundle
        known = machine.bundle.release
        unknown = replace(known, manifests=(*known.manifests, manifest(resource("Policy", "older", {"text": "o"}))))
        machine.bundle = replace(machine.bundle, release=unknown)
    world.settle(4)
    assert running(world) == set()
    world.refuses.clear()
    world.settle(61)
    assert running(world) == {"other"}


def test_a_member_that_refuses_facts_keeps_what_the_pool_allows() -> None:
    world = of_two()
    world.refuses.add("late")
    world.put(resource("FactSource", "late", {"inline": []}))
    world.known.remove(Reference("Pipeline", "search", "other"))
    world.settle(60)
    assert running(world) == {"syse", "other"}
    world.refuses.clear()
    world.settle(61)
    assert running(world) == {"syse"}


def test_a_pipeline_without_a_policy_leaves_the_release_of_an_earlier_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which did not count the policies of choices: no monitor took what it released."""
    world = World(1)
    counted = references.policies
    monkeypatch.setattr(references, "policies", lambda *known: tuple(x for x in counted(*known) if x != "mine"))
    mine = resource("Policy", "mine", {"text": "m", "mode": "Enforce"})
    world.put(mine)
    world.put({**revision(mine), "status": {}})
    paths = [{"path": "/a/**", "policy": {"name": "public"}, "choices": [{"by": "a", "policy": {"name": "mine"}}]}]
    world.change("Pipeline", "syse", conduits=[{"name": "d", "kind": "file", "ingress": True, "paths": paths}])
    world.settle()
    assert running(world) == set()
    monkeypatch.undo()
    world.known.remove(reference(mine))
    world.settle(5)
    assert running(world) == set(), "its release is not carried on"
    world.put(mine)
    world.settle()
    assert running(world) == {"syse"}
