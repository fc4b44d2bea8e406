# SPDX-License-Identifier: BSD-2-Clause
"""Modes that a pool allows no longer, in the simulated world: nothing keeps them in force."""

from __future__ import annotations

import hashlib

import pytest

from tests.reconcile.builders import resource
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
