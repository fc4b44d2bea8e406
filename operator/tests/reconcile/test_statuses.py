# SPDX-License-Identifier: BSD-2-Clause
"""The largest statuses of runs, benchmarks and pools fit the schemas of their kinds.

The API server refuses a whole status because of one field that it does not know.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.reconcile import analyses, benchmarks, runs
from shai_operator.reconcile.actions import Create, SetStatus
from shai_operator.reconcile.benchmarks import Measurement
from shai_operator.reconcile.members import Failure, Monitor
from shai_operator.reconcile.objects import PLURALS
from shai_operator.reconcile.results import MemberRun, State
from tests.reconcile.builders import FOR_SEARCH, condition, inventory, resource, written
from tests.reconcile.pool_world import World

if TYPE_CHECKING:
    from shai_operator.reconcile.members import Observation

BASES = Path(__file__).resolve().parents[3] / "crds" / "bases"
NOW = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
HASH = "ab" * 32
LONG = "x" * 100_000


def schema(plural: str) -> dict[str, Any]:
    definition = yaml.safe_load((BASES / f"{plural}.yaml").read_text())
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def faults(value: Any, rule: dict[str, Any], place: str = "") -> list[str]:
    """List the parts of a value that its schema does not allow."""
    match rule["type"]:
        case "object":
            known = rule.get("properties", {})
            missing = [f"{place}.{name} is missing" for name in rule.get("required", ()) if name not in value]
            unknown = [f"{place}.{name} is not known" for name in value if known and name not in known]
            inner = [faults(value[name], known[name], f"{place}.{name}") for name in value if name in known]
        case "array":
            unknown, missing = [f"{place} has {len(value)}"] if len(value) > rule["maxItems"] else [], []
            inner = [faults(element, rule["items"], f"{place}[{number}]") for number, element in enumerate(value)]
        case "string":
            good = isinstance(value, str) and rule.get("minLength", 0) <= len(value) <= rule.get(
                "maxLength", len(value)
            )
            return [] if good and value in rule.get("enum", [value]) else [f"{place} is {value!r:.40}"]
        case "integer":
            return [] if isinstance(value, int) and value >= rule.get("minimum", value) else [f"{place} is {value!r}"]
        case _:
            return [] if isinstance(value, bool) else [f"{place} is {value!r}"]
    return [*missing, *unknown, *(fault for found in inner for fault in found)]


def status(plural: str) -> dict[str, Any]:
    found: dict[str, Any] = schema(plural)["properties"]["status"]
    return found


def large_analysis() -> dict[str, Any]:
    tally = {"expected": 2, "granted": 1, "refused": 1, "undecided": 0}
    cause = {
        "count": 1,
        "mode": "Audit",
        **dict.fromkeys(("policy", "instance", "conduit", "reason", "suggestion"), LONG),
    }
    because = {"refusedBecause": [cause] * 9, "undecidedBecause": [cause] * 9}
    entry = {"task": "t", "access": "read", "conduits": "c", "instances": 1, **tally, **because}
    warning = {"task": LONG, "access": "write", "conduits": LONG, "instance": LONG, "instances": 1, "suggestion": LONG}
    return {
        "durationMicroseconds": 1,
        "conduits": 1,
        "classes": 1,
        "instances": 1,
        **tally,
        "accesses": [{**entry, "task": f"t{number}"} for number in range(500)],
        "warnings": [{**warning, "message": f"{number}{LONG}"} for number in range(100)],
    }


@pytest.mark.parametrize("state", list(State))
def test_an_analysis_run(state: State) -> None:
    found = large_analysis() if state == State.COMPLETE else None
    members = [MemberRun(f"m{number}", state, HASH, "views", 1, 2, found, LONG) for number in range(300)]
    run = resource("AnalysisRun", "one", {"pipeline": "syse", "trigger": "Manual"})
    known = inventory(
        resource("JailPool", "default", FOR_SEARCH), resource("Pipeline", "syse", {}, {"bundle": HASH}), run
    )
    assert faults(written(runs.reconcile(run, members, known, NOW).plan), status("analysisruns")) == []


@pytest.mark.parametrize("expression", ["0 * * * *", "0 25 * * *"])
def test_an_offline_analysis_and_the_runs_that_it_makes(expression: str) -> None:
    spec = {"pipeline": "syse", "schedule": expression, "concurrencyPolicy": "Allow"}
    oa = resource("OfflineAnalysis", "nightly", spec, creationTimestamp="2026-06-01T11:00:00Z")
    going = {"pipeline": "syse", "offlineAnalysis": "nightly"}
    active = [resource("AnalysisRun", f"nightly-{number}", going) for number in range(40)]
    pipeline = resource("Pipeline", "syse", {}, {"bundle": HASH})
    plan = analyses.reconcile(oa, inventory(pipeline, *active), NOW)
    assert faults(written(plan), status("offlineanalyses")) == []
    for made in (plan, analyses.changes(pipeline, inventory(pipeline))):
        for action in made.actions:
            if isinstance(action, Create):
                assert faults(action.body["spec"], schema("analysisruns")["properties"]["spec"]) == []


def test_a_benchmark() -> None:
    benchmark = resource(
        "Benchmark",
        "cost",
        {"pipeline": "syse", "thresholds": ["overhead>5%"]},
        {"startTime": "2026-06-01T12:00:00Z", "observedGeneration": 1},
    )
    exact = {"value": "-0.25", "low": "1e-07", "high": "3"}
    row = {"sessionLength": 1, "mode": "shai", "cpuOverhead": LONG, "throughputOverhead": LONG, "queriesPerSecond": 3}
    rows = status("benchmarks")["properties"]["table"]["items"]["properties"]
    names = rows["figures"]["items"]["properties"]["name"]["enum"]
    row |= {"figures": [{"name": name, **exact} for name in names]}
    judged = {"threshold": "overhead>5%", "exceeded": True, "message": LONG}
    found = {"rows": [row] * 100, "summary": {"dynamic": LONG, "shai": LONG}, "thresholds": [judged]}
    known = inventory(benchmark)
    for seen in (None, Measurement(1, 2, LONG), Measurement(2, 2, LONG, found, "t"), Measurement(error=LONG)):
        decision = benchmarks.reconcile(benchmark, seen, known, NOW)
        assert faults(written(decision.plan), status("benchmarks")) == []


def test_a_pipeline() -> None:
    known = inventory(
        resource("AnalysisRun", "one", {"pipeline": "syse"}, {"conditions": [condition("Succeeded", "True")]})
    )
    plan = runs.analyzed(resource("Pipeline", "syse", {}, {"bundle": HASH}), known, NOW)
    assert faults(written(plan), status("pipelines")) == []


@pytest.mark.parametrize("confidential", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_pool_with_a_task_that_says_much(*, first: bool, confidential: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(3)
    if not first:
        world.settle()
        world.define("two")
    failing, told = World.failing, Failure("TaskFailed", LONG, world.now, confidential=confidential)

    def fails(self: World, seen: Observation) -> Observation:
        seen = failing(self, seen)
        return replace(seen, monitor=replace(seen.monitor or Monitor(ready=True), tasks={}), bring_up_failed=told)

    monkeypatch.setattr(World, "failing", fails)
    world.settle(10)
    found = [action for action in world.trail if isinstance(action, SetStatus)]
    plurals = {action.obj["kind"]: PLURALS[action.obj["kind"]] for action in found}
    assert {"JailPool", "Pipeline", "Policy"} <= set(plurals)
    assert "x" * 1000 in json.dumps(world.status)
    wrong = [fault for action in found for fault in faults(action.status, status(plurals[action.obj["kind"]]))]
    assert [fault for fault in wrong if "hash of" not in fault] == [], "the simulated monitors' hashes are words"


def test_the_check_finds_what_does_not_fit() -> None:
    wrong = {"progress": {"done": -1, "phase": 7}, "members": [{}], "unknown": 1, "warnings": [{}] * 21}
    assert len(faults(wrong, status("analysisruns"))) == 5
