# SPDX-License-Identifier: BSD-2-Clause
"""A changed policy on a pool of three members with live users: promoted, held, and rolled back.

The tests share the pool. Each brings into force what it begins with, so it can run alone.
"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testing.operators import Operator
from testing.waiting import until
from tests.providers.support import arguments, processes_with
from tests.running import probe
from tests.running.objects import apply, await_condition, condition, events, message, read, resource, share
from tests.running.probe import CLOSED, OPEN, Visitors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster

POOL = "probes"
ROLLOUT = {
    "steps": [{"members": 1, "pauseSeconds": 4}, {"members": "100%", "pauseSeconds": 4}],
    "limits": {"denialsPercent": 10, "overheadPercent": 1000, "closedPercent": 100, "minimumSessions": 10},
}
"""Denials decide here: how long few sessions take depends on what else the machine does."""
AT_ONCE = {
    "steps": [{"members": "100%", "pauseSeconds": 0}],
    "limits": {"denialsPercent": 100, "overheadPercent": 1000, "closedPercent": 100, "minimumSessions": 0},
}
ONLY_X, ONLY_Y = frozenset({"x"}), frozenset({"y"})


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    # Not pytest's directory: sockets are below it, and their paths have to be short.
    with tempfile.TemporaryDirectory(prefix="shai-") as path:
        found = Path(path)
        probe.image(found / "images")
        probe.data(found / "data")
        yield found


@pytest.fixture(scope="module")
def operator(devcluster: Cluster, directory: Path) -> Iterator[Operator]:
    with Operator(devcluster, directory / "log", "--images", str(directory / "images")) as running:
        yield running


class World:
    """The pool and its status."""

    def __init__(self, cluster: Cluster, namespace: str, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.namespace = namespace
        self.principal = f"ann-{POOL}"

    def define(self, *, x: str, y: str, **rollout: Any) -> None:
        apply(self.cluster, self.namespace, *probe.definitions(POOL, x=x, y=y, rollout={**ROLLOUT, **rollout}))

    def begin(self, *, x: str, y: str) -> None:
        """Have these policies in force on all members, whatever was before."""
        self.define(x=x, y=y, **AT_ONCE)
        for kind, name in (("Policy", "on-x"), ("Policy", "on-y"), ("Pipeline", "probe")):
            until(lambda kind=kind, name=name: self.is_ready(kind, name), f"{kind} {name} is ready", 240)

    def is_ready(self, kind: str, name: str) -> bool:
        """Whether an object is Ready in its present generation."""
        found = read(self.cluster, kind, self.namespace, name)
        current = (found or {}).get("metadata", {}).get("generation")
        return any(
            entry["type"] == "Ready" and entry["status"] == "True" and entry["observedGeneration"] == current
            for entry in ((found or {}).get("status") or {}).get("conditions") or ()
        )

    def pool(self) -> dict[str, Any]:
        found = read(self.cluster, "JailPool", "", POOL)
        assert found is not None
        return found

    def stable(self) -> str:
        return str(share(self.pool(), self.namespace).get("stableRelease") or "")

    def releases(self) -> list[str]:
        return [row.get("release", "") for row in self.pool()["status"]["members"]]

    def monitors(self, member: str) -> list[int]:
        """Return the processes of a member's monitor."""
        found = processes_with(f"{self.directory}/{member}/")
        return [pid for pid in found if "bin/shai monitor" in arguments(pid)]

    def addresses(self) -> list[str]:
        return [row["address"] for row in self.pool()["status"]["members"]]

    def rolled_out(self, status: str, reason: str, seconds: float = 90) -> dict[str, Any]:
        return await_condition(
            self.cluster, "Pipeline", self.namespace, "probe", "RolledOut", (status, reason), seconds=seconds
        )

    def policy(self, name: str) -> dict[str, Any]:
        found = read(self.cluster, "Policy", self.namespace, name)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def world(
    devcluster: Cluster, operator: Operator, new_namespace: Callable[[], str], directory: Path
) -> Iterator[World]:
    """Three members."""
    made = World(devcluster, new_namespace(), directory / "members")
    spec = {
        "allowedNamespaces": {"names": [made.namespace]},
        "provider": "local",
        "replicas": 3,
        "directory": str(directory / "members"),
        "data": {"source": str(directory / "data")},
        "network": {"addresses": "127.0.21.0/24"},
        "healing": {"periodSeconds": 1},
        "runtimes": probe.RUNTIMES,
    }
    apply(devcluster, made.namespace, resource("JailPool", POOL, **spec))
    try:
        made.begin(x=OPEN, y=CLOSED)
        yield made
    finally:
        devcluster.delete("jailpool", POOL)
    assert not list((directory / "members").glob(f"{POOL}-*"))
    assert operator.process.poll() is None


def test_a_good_change_reaches_all_members_and_nobody_sees_half_of_it(world: World) -> None:
    world.begin(x=OPEN, y=CLOSED)
    before = world.stable()
    with Visitors(world.principal, world.addresses()) as visitors:
        until(lambda: all(seen[ONLY_X] > 3 for seen in visitors.seen.values()), "everybody reads x")
        world.define(x=CLOSED, y=OPEN, paused=True)  # until both policies are there
        world.rolled_out("False", "Paused")
        world.define(x=CLOSED, y=OPEN)
        found = until(
            lambda: (read(world.cluster, "Pipeline", world.namespace, "probe") or {})["status"].get("effect"),
            "the effect",
        )
        assert found["openedTotal"] == found["closedTotal"] > 0
        assert found["usersTotal"] == 1
        mixed = until(lambda: len(set(found := world.releases())) == 2 and found, "a canary", seconds=60)
        assert mixed.count(before) == 2
        until(lambda: world.stable() != before, "the change is promoted", seconds=90)
        until(lambda: all(seen[ONLY_Y] > 3 for seen in visitors.seen.values()), "everybody reads y")
    assert visitors.wrong == []
    for seen in visitors.seen.values():
        assert set(seen) <= {ONLY_X, ONLY_Y}, "two policies have come into force one after the other"
    world.rolled_out("True", "Complete")
    until(lambda: condition(world.policy("on-x"), "Ready") == ("True", "Stable"), "the policy is stable")


def test_a_change_that_denies_too_much_is_rolled_back_and_its_correction_is_rolled_out(
    world: World, operator: Operator
) -> None:
    def denials(track: str) -> float:
        return operator.metric("shai_rollout_track_denial_ratio", pool=POOL, track=track)

    world.begin(x=CLOSED, y=OPEN)
    ended = operator.metric("shai_rollouts_total", pool=POOL, result="rolled_back")
    before, revision = world.stable(), world.policy("on-y")["status"]["stableRevision"]
    generation = world.policy("on-y")["metadata"]["generation"]
    with Visitors(world.principal, world.addresses()) as visitors:
        world.define(x=CLOSED, y=CLOSED)
        until(lambda: denials("canary") > denials("stable") + 0.1, "the metrics say so first", seconds=60)
        world.rolled_out("False", "RolledBack")
        until(lambda: set(world.releases()) == {before}, "all members have the stable release again", seconds=60)
        counts = {address: seen[ONLY_Y] for address, seen in visitors.seen.items()}
        until(
            lambda: all(visitors.seen[visitor][ONLY_Y] > counts[visitor] for visitor in counts),
            "everybody reads y again",
        )
    untouched = [address for address, seen in visitors.seen.items() if frozenset() not in seen]
    assert len(untouched) == 2, "only the canary had the change"
    found = await_condition(world.cluster, "Policy", world.namespace, "on-y", "Ready", ("False", "RolledBack"))
    assert found["status"]["stableRevision"] == revision
    assert found["status"]["rejectedRevision"] != revision
    assert found["metadata"]["generation"] == generation + 1, "a rollback does not touch the spec"
    text = message(read(world.cluster, "Pipeline", world.namespace, "probe"), "RolledOut")
    assert "denials" in text
    assert operator.metric("shai_rollouts_total", pool=POOL, result="rolled_back") == ended + 1
    until(lambda: not operator.samples("shai_rollout_track_sessions"), "nothing is compared any more")
    until(
        lambda: [event for event in events(world.cluster, "default", POOL) if event["reason"] == "RolledBack"],
        "an event",
    )
    assert world.stable() == before
    world.define(x=CLOSED, y=CLOSED + "# the same in other words\n", paused=True)
    world.rolled_out("False", "Paused")
    assert set(world.releases()) == {before}
    world.define(x=CLOSED, y=OPEN)
    world.rolled_out("True", "Complete")
    assert world.stable() == before


def test_without_users_a_change_waits_for_somebody_to_judge_it_by(world: World, operator: Operator) -> None:
    world.begin(x=CLOSED, y=OPEN)
    before = world.stable()
    world.define(x=OPEN, y=CLOSED)
    found = world.rolled_out("False", "Inconclusive")
    assert "sessions" in message(found, "RolledOut")
    assert sorted(world.releases()).count(before) == 2
    until(
        lambda: operator.metric("shai_rollout_info", pool=POOL, stable=before, reason="Inconclusive") == 1, "so it says"
    )
    assert operator.metric("shai_rollout_step", pool=POOL) == 1
    with Visitors(world.principal, world.addresses()):
        world.rolled_out("True", "Complete")
    assert world.stable() != before


def test_a_change_that_closes_everything_does_not_begin(world: World) -> None:
    world.begin(x=OPEN, y=CLOSED)
    before = world.stable()
    world.define(x=CLOSED, y=CLOSED, limits={**ROLLOUT["limits"], "closedPercent": 10})  # type: ignore[dict-item]
    found = world.rolled_out("False", "BlocksFlows")
    assert "closedPercent" in message(found, "RolledOut")
    assert set(world.releases()) == {before}
    world.define(x=OPEN, y=CLOSED)
    world.rolled_out("True", "Complete")


def test_a_monitor_that_is_killed_during_a_rollout_loses_none_of_it(world: World, operator: Operator) -> None:
    """What the canary did before counts on, nothing counts twice, and the rollout ends as it would have ended."""

    def served() -> float:
        found = operator.samples("shai_rollout_track_sessions")
        return sum(value for labels, value in found if labels["pool"] == POOL and labels["track"] == "canary")

    world.begin(x=OPEN, y=CLOSED)
    before = world.stable()
    steps = [{"members": 1, "pauseSeconds": 20}, {"members": "100%", "pauseSeconds": 0}]
    with Visitors(world.principal, world.addresses()) as visitors:
        world.define(x=CLOSED, y=OPEN, steps=steps)
        until(lambda: served() >= 10, "the canary is watched", seconds=60)
        (canary,) = share(world.pool(), world.namespace)["rollout"]["canaries"]
        (row,) = [row for row in world.pool()["status"]["members"] if row["name"] == canary]
        known = served()
        for monitor in world.monitors(canary):
            os.kill(monitor, signal.SIGKILL)
        rollout = until(
            lambda: (found := share(world.pool(), world.namespace)["rollout"]).get("interruptions") and found,
            "the canary is missed",
            seconds=60,
        )
        assert rollout["release"] not in ("", before), "it is neither rolled back nor promoted for it"
        until(lambda: served() >= known + 10, "it is watched again, and what it did before counts", seconds=120)
        counted, visited = served(), visitors.seen[row["address"]].total() + visitors.refused[row["address"]]
        assert counted <= visited, "nothing counts twice"
        world.rolled_out("True", "Complete", seconds=120)
    assert world.stable() not in ("", before)
