# SPDX-License-Identifier: BSD-2-Clause
"""The namespace that a pool serves, in the simulated world: pools with claimants, and pools that change hands."""

from __future__ import annotations

import pytest

from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.members import ApplyBundle
from shai_operator.reconcile.objects import Reference, name
from shai_operator.reconcile.pools import StoreRelease
from tests.reconcile import builders
from tests.reconcile.builders import resource
from tests.reconcile.pool_world import World, kinds, settled


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
