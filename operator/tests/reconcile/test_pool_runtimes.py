# SPDX-License-Identifier: BSD-2-Clause
"""Runtimes that a pool is to give, or gives no longer, in the simulated world.

As the real ones, its monitors refuse what names a runtime that they were not given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reconcile.builders import resource
from tests.reconcile.pool_world import World, settled

if TYPE_CHECKING:
    from collections.abc import Mapping

JAVA, PYTHON = ({"name": name, "paths": ["/usr"]} for name in ("java", "python"))


def running(world: World) -> list[set[str]]:
    """Return the tasks that each member runs, each with its runtime."""
    return [
        {f"{task['metadata']['name']} {task['spec'].get('runtimeName', '')}" for task in bundle.release.of_kind("Task")}
        for bundle in (machine.bundle for _, machine in sorted(world.machines.items()))
        if bundle
    ]


def give(world: World, *runtimes: Mapping[str, object]) -> None:
    """Change the pool's runtimes, which is a change of its members' configuration."""
    world.digest += "+"
    world.change("JailPool", "default", runtimes=list(runtimes))


def test_a_runtime_and_the_task_that_names_it_may_come_at_once() -> None:
    world = settled()
    assert world.status["runtimes"] == []
    world.unreachable = {"h1"}
    world.change("Task", "search", runtimeName="java")
    give(world, JAVA)
    world.settle()
    assert world.status["runtimes"] == [], "the members cannot be updated yet"
    assert running(world) == [{"search "}] * 3
    world.unreachable = set()
    world.settle()
    assert world.status["runtimes"] == ["java"]
    assert running(world) == [{"search java"}] * 3
    assert "rejectedRelease" not in world.status
    assert not [event for event in world.events if event.reason == "RolledBack"]


def test_a_new_pool_has_its_runtimes_at_once() -> None:
    world = World(runtimes=[JAVA])
    world.change("Task", "search", runtimeName="java")
    world.settle(3)
    assert running(world) == [{"search java"}] * 3


def test_a_runtime_stays_while_the_members_get_another_one() -> None:
    world = settled(runtimes=[JAVA])
    give(world, PYTHON, JAVA)
    world.look()
    assert world.status["runtimes"] == ["java"]
    world.settle()
    assert world.status["runtimes"] == ["python", "java"]


@pytest.mark.parametrize("rollout", [{"limits": {"minimumSessions": 5}}, {"paused": True}])
def test_nothing_keeps_a_runtime_that_the_pool_gives_no_longer(rollout: dict[str, object]) -> None:
    world = World(runtimes=[JAVA, PYTHON])
    world.change("Task", "search", runtimeName="java")
    world.change("Pipeline", "syse", rollout=rollout)
    world.put(resource("Task", "index", {"run": "Always", "runtimeName": "python"}))
    world.put(resource("Pipeline", "other", {"tasks": ["index"], "rollout": {"limits": {"minimumSessions": 5}}}))
    world.settle()
    assert running(world) == [{"search java", "index python"}] * 3
    give(world, PYTHON)
    world.settle(2)
    assert running(world) == [{"index python"}] * 3, "the other pipeline goes on"
    world.settle()
    assert running(world) == [{"index python"}] * 3, "nothing goes back to it"
    give(world, PYTHON, JAVA)
    world.change("Pipeline", "syse", rollout={"limits": {"minimumSessions": 5}})
    world.settle()
    assert running(world) == [{"search java", "index python"}] * 3


def test_an_upgrade_from_paths_to_names_ends_with_the_names_on_all_members() -> None:
    world = World()
    world.change("Task", "search", runtime=["/usr"])
    world.settle()
    assert running(world) == [{"search "}] * 3
    world.change("Task", "search", runtime=None, runtimeName="java")
    world.settle(3)
    assert running(world) == [{"search "}] * 3, "the pool gives it no runtime yet"
    give(world, JAVA)
    world.settle(8)
    assert running(world) == [{"search java"}] * 3
    assert not [event for event in world.events if event.reason == "RolledBack"]
