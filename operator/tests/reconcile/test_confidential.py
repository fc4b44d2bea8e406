# SPDX-License-Identifier: BSD-2-Clause
"""What hosts and programs say is for those who may read JailPools, not for authors of pipelines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import benchmarks, definitions
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.members import Failure, Monitor
from shai_operator.reconcile.objects import reference
from tests.reconcile.builders import resource
from tests.reconcile.pool_world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shai_operator.reconcile.actions import Plan
    from shai_operator.reconcile.members import Observation

LOOKS = 60
SAID = "fact source friends of namespace tenant-b: WRONGPASS, user bob, document /inbox/bob/secret-plan.txt"


def failed(member: Observation) -> Observation:
    return replace(member, configuration="", failed=Failure("PlaybookFailed", SAID, World().now))


def away(member: Observation) -> Observation:
    return replace(member, monitor=None, unreachable=SAID)


def weak(member: Observation) -> Observation:
    return replace(member, monitor=member.monitor or Monitor(ready=True), insufficient=SAID)


def starting(member: Observation) -> Observation:
    return replace(member, monitor=Monitor(ready=False, reason=SAID))


def broken_off(member: Observation) -> Observation:
    said = Failure("TaskFailed", SAID, World().now, confidential=True)
    return replace(member, monitor=replace(member.monitor or Monitor(ready=True), tasks={}), bring_up_failed=said)


@pytest.mark.parametrize(
    ("fault", "looks_before"),
    [(failed, 0), (away, 0), (weak, 0), (starting, 0), (away, 5), (weak, 5), (starting, 5), (broken_off, 0)],
)
def test_authors_read_only_that_the_pool_says_more(
    fault: Callable[[Observation], Observation], looks_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(1, allowedModes=["shai", "baseline"])
    if looks_before:
        world.settle(looks_before)
        world.define("two")
    before = World.failing
    monkeypatch.setattr(World, "failing", lambda self, member: fault(before(self, member)))
    told = []
    for _ in range(LOOKS):
        world.settle(1)
        for_authors = json.dumps([world.of("Pipeline", "syse"), world.of("Policy", "public"), benchmark(world)])
        assert SAID not in for_authors
        told.append("of which the JailPool's status says more" in for_authors)
    assert any(told)
    assert SAID in json.dumps(world.status), "who may read the pool reads all of it"


@pytest.mark.parametrize("first", [True, False])
def test_why_a_monitor_refuses_a_change_is_for_the_pool(*, first: bool) -> None:
    world = World(2)
    if not first:
        world.settle()
        world.define("two")
    world.refuses |= {"one", "two"}
    said, told = "does not parse", []
    for _ in range(LOOKS):
        world.settle(1)
        for_authors = json.dumps([world.of("Pipeline", "syse"), world.of("Policy", "public")])
        assert said not in for_authors
        told.append("refuses it, of which the JailPool's status says more" in for_authors)
    assert told[-1]
    assert said in json.dumps(world.status), "who may read the pool reads it, also when it has been rolled back"


def benchmark(world: World) -> object:
    """Return the status of a Benchmark of the pipeline, after the pipeline's controller has looked at it."""
    pipeline = world.known.find("Pipeline", "search", "syse")
    assert pipeline is not None
    verdicts = {reference(obj): Verdict() for kind in ("Policy", "Task", "Pipeline") for obj in world.known.all(kind)}
    written = of_status(definitions.pipeline(pipeline, verdicts, world.known, world.now))
    own = {condition["type"]: condition for condition in written["conditions"]}
    kept = {condition["type"]: condition for condition in pipeline["status"].get("conditions", ())}
    state = {**pipeline["status"], "conditions": list({**kept, **own}.values())}
    world.known.put({**pipeline, "status": state})
    obj = resource("Benchmark", "cost", {"pipeline": "syse", "modes": ["baseline", "shai"], "rounds": 2})
    found = of_status(benchmarks.reconcile(obj, None, world.known, world.now).plan)
    world.known.put(pipeline)
    return [written, found]


def of_status(plan: Plan) -> Mapping[str, Any]:
    return next(action for action in plan.actions if isinstance(action, SetStatus)).status
