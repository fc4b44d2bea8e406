# SPDX-License-Identifier: BSD-2-Clause
"""Pools whose owner no longer allows a source of facts: no member runs a pipeline without the facts."""

from __future__ import annotations

import pytest

from tests.reconcile.builders import resource
from tests.reconcile.pool_world import World, first_under_way, running_modes

LISTED = ["https://facts.example"]
BLOCKED = resource("FactSource", "blocked", {"http": {"url": "https://facts.example/blocked"}})


def with_source(world: World) -> World:
    world.change("JailPool", "default", allowedSources=LISTED)
    world.put(BLOCKED)
    world.settle()
    assert facts_with_pipelines(world) == {("blocked",)}
    world.trail.clear()
    return world


def facts_with_pipelines(world: World) -> set[tuple[str, ...]]:
    """Return the names of the facts that members have in force beside a pipeline."""
    bundles = [machine.bundle for machine in world.machines.values() if machine.bundle]
    return {
        tuple(fact["metadata"]["name"] for fact in bundle.facts.manifests)
        for bundle in bundles
        if bundle.release.of_kind("Pipeline")
    }


def unlist(world: World) -> None:
    """Shorten the list; while members change over, none has a pipeline without the facts."""
    world.change("JailPool", "default", allowedSources=[])
    for _ in range(6):
        world.look(1)
        assert facts_with_pipelines(world) <= {("blocked",)}
    world.settle()


@pytest.mark.parametrize("paused", [False, True])
def test_members_drop_all_of_it_at_once(*, paused: bool) -> None:
    world = with_source(World())
    before = world.status["stableRelease"]
    if paused:  # in the middle of a rollout, which the author holds
        world.define("two")
        world.look()
        steps = [{"members": 1, "pauseSeconds": 20}, {"members": "100%", "pauseSeconds": 20}]
        world.change("Pipeline", "syse", rollout={"steps": steps, "paused": True})
        world.settle(3)
        assert world.status["candidateRelease"]
    unlist(world)
    assert running_modes(world) == set()
    world.change("JailPool", "default", allowedSources=LISTED)
    world.settle()
    assert running_modes(world) == {"shai"}
    assert facts_with_pipelines(world) == {("blocked",)}
    assert paused or world.status["stableRelease"] == before


def test_a_first_release_goes_too() -> None:
    world = first_under_way()
    world.change("JailPool", "default", allowedSources=LISTED)
    world.put(BLOCKED)
    world.look()
    unlist(world)
    assert running_modes(world) == set()


def test_a_member_that_is_drained_keeps_what_it_has() -> None:
    world = with_source(World())
    world.machines["default-2"].sessions = 4
    world.change("JailPool", "default", replicas=2)
    world.look()
    kept = world.machines["default-2"].bundle
    world.change("JailPool", "default", allowedSources=[])
    world.look()
    assert world.machines["default-2"].bundle == kept, "with the facts that are left, it could allow more"
    assert world.machines["default-0"].bundle != kept


def test_a_mistake_in_one_namespace_is_nothing_to_others() -> None:
    world = World()
    world.put({**BLOCKED, "metadata": {**BLOCKED["metadata"], "namespace": "other"}})
    world.settle()
    assert running_modes(world) == {"shai"}
