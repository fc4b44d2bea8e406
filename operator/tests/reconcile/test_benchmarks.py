# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import benchmarks, turns
from shai_operator.reconcile.actions import WARNING, Create, Emit, Plan
from shai_operator.reconcile.benchmarks import RESULTS_LIMIT, Decision, Measurement, StartMeasurement, Target
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.objects import Reference
from shai_operator.reconcile.turns import Turns
from tests.reconcile.builders import (
    CREATED,
    FOR_SEARCH,
    condition,
    inventory,
    message,
    resource,
    status_of,
    succeeded,
    tenant,
)

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Inventory, Object

NOW = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
STARTED = CREATED
HOSTS = [{"name": "rack", "address": "10.0.0.1"}, {"name": "shelf", "address": "10.0.0.2"}]
RESULTS = {
    "rows": [{"sessionLength": 1, "mode": "shai", "queriesPerSecond": 310, "throughputOverhead": "4.7 %"}],
    "summary": {"dynamic": "1: 7.2 %", "shai": "1: 4.7 %", "control": "1: 0.1 %", "audit": "1: 5 %"},
}


def benchmark(name: str = "cost", status: dict[str, Any] | None = None, **more: Any) -> Object:
    spec = {"pipeline": "syse", "modes": ["baseline", "shai"], "rounds": 2, "deadlineSeconds": 60, "scenario": "search"}
    return resource("Benchmark", name, spec | more.pop("spec", {}), status, **more)


def running(**more: Any) -> Object:
    return benchmark(status={"startTime": STARTED, "observedGeneration": 1}, **more)


def pipeline(name: str = "syse", pool: str = "main", ready: str = "True", analyzed: str = "True") -> Object:
    conditions = [condition("Ready", ready, message="why not"), condition("Analyzed", analyzed, message="not yet")]
    return resource("Pipeline", name, {"pool": pool}, {"conditions": conditions})


def pool(name: str = "main", host: str = "", ready: str = "True", space: str = "search") -> Object:
    stranger = {"namespace": space, "namespaceUID": tenant(space, 0).uid}
    owned = {"namespace": space, "namespaceUID": tenant(space).uid}
    members = [
        {"name": f"{name}-1", "ordinal": 1, "host": host, "ready": ready, **owned},
        {"name": f"{name}-0", "ordinal": 0, "host": host, "ready": "False", **owned},
        {"name": f"{name}-2", "ordinal": 2, "host": host, "ready": ready, **owned},
        {"name": f"{name}-free", "ordinal": 0, "host": host, "ready": ready},
        {"name": f"{name}-former", "ordinal": 0, "host": host, "ready": ready, **stranger},
    ]
    allowed = {"allowedNamespaces": {"names": [space]}, "allowedModes": ["shai", "baseline"]}
    return resource("JailPool", name, {"hosts": HOSTS, **allowed}, {"members": members})


def measured(*values: Any, **more: Any) -> Measurement:
    return Measurement(*values, **{"pool": "main", **more})


def world(*objects: Object) -> Inventory:
    return inventory(*(objects or (pipeline(), pool())))


def test_the_first_ready_member_is_measured() -> None:
    decision = benchmarks.reconcile(benchmark(spec={"seed": 7}), None, world(), NOW)
    assert decision.start == StartMeasurement(
        Target("main", "main-1", ""),
        {"name": "cost", "scenario": "search", "modes": ["baseline", "shai"], "rounds": 2, "seed": 7},
    )
    assert succeeded(decision) == ("Unknown", "Running")
    assert status_of(decision)["startTime"] == timestamp(NOW)


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ([pool()], "waits for Pipeline syse, which is not in namespace search; apply it"),
        ([pool(), pipeline(ready="False")], "waits for Pipeline syse to be ready: why not"),
        ([pool(), pipeline(analyzed="Unknown")], "waits for Pipeline syse to be analysed: not yet"),
        ([pipeline()], "waits for a member of JailPool main to be ready"),
        ([pipeline(), pool(ready="Unknown")], "waits for a member of JailPool main"),
    ],
)
def test_it_waits_for_what_it_measures(objects: list[Object], says: str) -> None:
    decision = benchmarks.reconcile(benchmark(), None, world(*objects), NOW)
    assert decision.start is None
    assert succeeded(decision) == ("Unknown", "Pending")
    assert says in message(decision)
    assert "startTime" not in status_of(decision)


@pytest.mark.parametrize(
    ("spec", "reason", "says"),
    [
        ({"allowedNamespaces": {}}, "NamespaceNotAllowed", "main does not serve namespace search"),
        (FOR_SEARCH, "ModeNotAllowed", "baseline is not allowed (JailPool main allows shai, dynamic, dynamic-lazy)"),
        ({**FOR_SEARCH, "allowedModes": ["baseline"]}, "ModeNotAllowed", "mode shai is not allowed"),
        ({**FOR_SEARCH, "allowedModes": []}, "ModeNotAllowed", "(JailPool main allows none)"),
    ],
)
def test_what_its_pool_does_not_allow_is_not_measured(spec: dict[str, Any], reason: str, says: str) -> None:
    known = world(pipeline(), {**pool(), "spec": spec})
    decision = benchmarks.reconcile(benchmark(), None, known, NOW)
    assert (decision.start, succeeded(decision)) == (None, ("Unknown", reason))
    assert says in message(decision)
    decision = benchmarks.reconcile(running(), measured(1, 2), known, NOW)
    assert (decision.cancel, succeeded(decision)) == (True, ("False", reason)), "one that runs is ended"
    older = benchmark("older", creationTimestamp="2026-06-01T11:00:00Z", spec={"modes": ["audit", "baseline"]})
    assert benchmarks.reconcile(benchmark(), None, world(pipeline(), pool(), older), NOW).start is not None


CLOSED = {"spec": {**FOR_SEARCH, "allowedModes": ["shai"]}}


@pytest.mark.parametrize(
    "objects",
    [
        [{**pool(), **CLOSED}],
        [pipeline(pool="mine"), pool("mine"), {**pool(), **CLOSED}],
        [pipeline(pool="nowhere"), {**pool(), **CLOSED}],
        [pipeline()],
    ],
    ids=["its pipeline is deleted", "its pipeline names another pool", "or none", "its pool is gone"],
)
def test_no_measurement_outlasts_what_lets_it_use_the_pool(objects: list[Object]) -> None:
    decision = benchmarks.reconcile(running(), measured(1, 2), inventory(*objects), NOW)
    assert (decision.cancel, succeeded(decision)) == (True, ("False", "Failed"))
    assert "Pipeline syse is no longer in JailPool main" in message(decision)


def test_what_is_measured_is_kept_when_the_pipeline_goes() -> None:
    decision = benchmarks.reconcile(running(), measured(12, 12, "done", RESULTS, "a table"), inventory(pool()), NOW)
    assert succeeded(decision) == ("True", "Complete")


def test_a_benchmark_of_another_namespace_is_not_named() -> None:
    theirs = benchmark("before", namespace="else", creationTimestamp="2026-06-01T11:00:00Z")
    its = pipeline(pool="away")
    its["metadata"]["namespace"] = "else"
    away = pool("away", space="else")
    decision = benchmarks.reconcile(benchmark(), None, world(pipeline(), pool(), theirs, its, away), NOW)
    assert decision.start is None
    assert "waits for a Benchmark of another namespace" in message(decision)


@pytest.mark.parametrize(
    ("first", "host", "waits"),
    [
        (benchmark("before", creationTimestamp="2026-06-01T11:00:00Z"), "", True),
        (benchmark("after", creationTimestamp="2026-06-01T13:00:00Z"), "", False),
        (
            benchmark(
                "before", {"conditions": [condition("Succeeded", "True")]}, creationTimestamp="2026-06-01T11:00:00Z"
            ),
            "",
            False,
        ),
        (benchmark("before", spec={"pipeline": "other"}, creationTimestamp="2026-06-01T11:00:00Z"), "rack", False),
        (benchmark("before", spec={"pipeline": "third"}, creationTimestamp="2026-06-01T11:00:00Z"), "rack", True),
        (benchmark("before", spec={"pipeline": "gone"}, creationTimestamp="2026-06-01T11:00:00Z"), "", False),
    ],
)
def test_one_measurement_at_a_time_on_a_host_oldest_first(first: Object, host: str, waits: bool) -> None:  # noqa: FBT001
    objects = [
        pipeline(),
        pool(host=host),
        pipeline("other", "side"),
        pool("side", host="shelf"),
        pipeline("third", "back"),
        pool("back", host="10.0.0.1"),
    ]
    decision = benchmarks.reconcile(benchmark(), None, world(*objects, first), NOW)
    assert (decision.start is None) == waits
    if waits:
        assert "waits for Benchmark search/before" in message(decision)


def of(space: str, made: str, minute: int, status: dict[str, Any] | None = None) -> Object:
    return benchmark(made, status, namespace=space, creationTimestamp=f"2026-06-01T11:{minute:02}:00Z")


def everywhere(*spaces: str) -> list[Object]:
    """Make a pipeline in each namespace, each with a pool of its own on this machine."""
    found = []
    for space in spaces:
        its, where = pipeline(pool=space), pool(space, space=space)
        its["metadata"]["namespace"] = space
        found += [its, where]
    return found


def next_of(waiting: list[Object], turns: Turns) -> list[str]:
    known = inventory(*everywhere("a", "b", "c"), *waiting)
    return [
        f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        for one in waiting
        if benchmarks.reconcile(one, None, known, NOW, turns).start
    ]


def test_namespaces_take_turns_however_many_benchmarks_one_queues() -> None:
    waiting = [of("a", f"many-{number}", number) for number in range(20)]
    waiting += [of("b", "second", 31), of("b", "first", 30), of("c", "one", 40)]
    had: dict[tuple[str, str], None] = {}
    order = []
    while waiting:
        (first,) = next_of(waiting, Turns(had=tuple(had)))
        order.append(first)
        space, made = first.split("/")
        waiting = [one for one in waiting if (one["metadata"]["namespace"], one["metadata"]["name"]) != (space, made)]
        turns.taken(had, "", space)
    assert order[:6] == ["a/many-0", "b/first", "c/one", "a/many-1", "b/second", "a/many-2"]
    assert order[6:] == [f"a/many-{number}" for number in range(3, 20)]


def test_turns_on_one_host_are_not_those_on_another() -> None:
    waiting = [of("a", "old", 0), of("b", "new", 1)]
    assert next_of(waiting, Turns(had=[("10.0.0.9", "a")])) == ["a/old"]
    assert next_of(waiting, Turns(had=[("", "a")])) == ["b/new"]
    assert next_of(waiting, Turns(had=[("", "b"), ("", "a")])) == ["b/new"]


def test_one_that_was_interrupted_is_the_first() -> None:
    broken_off = of("a", "old", 0, {"startTime": timestamp(NOW), "observedGeneration": 1})
    assert next_of([broken_off, of("b", "new", 1)], Turns(had=[("", "a")])) == ["a/old"]


def test_nothing_is_measured_beside_a_measurement_whoever_has_deleted_its_benchmark() -> None:
    waiting = [of("a", "old", 0)]
    assert next_of(waiting, Turns({"": Reference("Benchmark", "b", "gone")})) == []
    assert next_of(waiting, Turns({"10.0.0.9": Reference("Benchmark", "b", "gone")})) == ["a/old"]


def test_only_the_last_turns_are_remembered() -> None:
    had: dict[tuple[str, str], None] = {}
    for number in range(turns.TURNS_REMEMBERED + 1):
        turns.taken(had, "", str(number))
    turns.taken(had, "", "1")
    assert len(had) == turns.TURNS_REMEMBERED
    assert [next(iter(had)), next(reversed(had))] == [("", "2"), ("", "1")]


def test_progress_is_shown() -> None:
    decision = benchmarks.reconcile(running(), measured(3, 12, "slice 4"), world(), NOW)
    assert status_of(decision)["progress"] == {"done": 3, "total": 12, "message": "slice 4"}
    assert status_of(decision)["startTime"] == STARTED
    assert succeeded(decision) == ("Unknown", "Running")
    assert (decision.start, decision.cancel) == (None, False)


def test_results_go_into_the_status_and_a_config_map() -> None:
    done = measured(12, 12, "done", RESULTS, "a table")
    decision = benchmarks.reconcile(running(), done, world(), NOW)
    create = decision.plan.actions[0]
    assert isinstance(create, Create)
    assert json.loads(create.body["data"]["results.json"]) == RESULTS
    assert create.body["data"]["table.txt"] == "a table"
    assert create.body["metadata"]["ownerReferences"][0]["kind"] == "Benchmark"
    found = status_of(decision)
    assert found["results"] == create.body["metadata"]["name"]
    assert found["table"] == RESULTS["rows"]
    assert found["summary"] == {"dynamic": "1: 7.2 %", "shai": "1: 4.7 %", "control": "1: 0.1 %"}
    assert succeeded(decision) == ("True", "Complete")
    assert found["completionTime"] == timestamp(NOW)
    again = benchmarks.reconcile(running(), done, world(), NOW)
    assert again == decision, "the ConfigMap's name says its content"


def judged(threshold: str, **exceeded: bool) -> dict[str, Any]:
    return {"threshold": threshold, **exceeded, "message": f"{threshold}: 7.2 %"}


WITHIN, ABOVE = judged("overhead>5%", exceeded=False), judged("p99>1ms", exceeded=True)


@pytest.mark.parametrize(
    ("found", "expected", "rows"),
    [
        ([WITHIN], ("True", "Within"), ["False"]),
        ([WITHIN, ABOVE], ("False", "Exceeded"), ["False", "True"]),
    ],
)
def test_thresholds_are_a_condition_of_their_own(
    found: list[dict[str, Any]], expected: tuple[str, str], rows: list[str]
) -> None:
    made = running(spec={"thresholds": [one["threshold"] for one in found]})
    done = measured(12, 12, "done", {**RESULTS, "thresholds": found}, "a table")
    decision = benchmarks.reconcile(made, done, world(), NOW)
    run, within = status_of(decision)["conditions"]
    assert (run["status"], run["reason"]) == ("True", "Complete"), "the run itself succeeded"
    assert (within["type"], within["status"], within["reason"]) == ("WithinThresholds", *expected)
    assert [row["exceeded"] for row in status_of(decision)["thresholds"]] == rows
    told = [action.message for action in decision.plan.actions if isinstance(action, Emit) and action.type == WARNING]
    assert told == (["p99>1ms: 7.2 %"] if expected[1] == "Exceeded" else [])


def test_thresholds_are_undecided_until_there_are_results() -> None:
    spec = {"thresholds": ["overhead>5%"]}
    for measurement, expected in ((measured(1, 2), "Pending"), (measured(error="no keys.jsonl"), "NotMeasured")):
        within = status_of(benchmarks.reconcile(running(spec=spec), measurement, world(), NOW))["conditions"][1]
        assert (within["status"], within["reason"]) == ("Unknown", expected)
    found = status_of(benchmarks.reconcile(running(), measured(1, 2), world(), NOW))
    assert [entry["type"] for entry in found["conditions"]] == ["Succeeded"], "no thresholds, no condition"


def test_the_status_names_the_command_that_makes_the_report() -> None:
    found = status_of(benchmarks.reconcile(running(), measured(results=RESULTS, table="t"), world(), NOW))
    assert found["report"] == (
        f"kubectl -n search get configmap {found['results']} -o json | shai report - --file {found['results']}.html"
    )


def test_raw_slices_that_do_not_fit_are_left_out() -> None:
    for size, kept in ((RESULTS_LIMIT // 2, True), (RESULTS_LIMIT, False)):
        found = {**RESULTS, "samples": ["x" * size]}
        create = benchmarks.reconcile(running(), measured(results=found, table="t"), world(), NOW).plan.actions[0]
        assert isinstance(create, Create)
        assert ("samples" in json.loads(create.body["data"]["results.json"])) == kept


def test_results_that_come_at_the_deadline_are_kept() -> None:
    late = running(spec={"deadlineSeconds": 30})
    assert succeeded(benchmarks.reconcile(late, measured(results={}), world(), NOW))[1] == "Complete"
    assert succeeded(benchmarks.reconcile(late, None, world(), NOW))[1] == "TimedOut"


def test_twins_may_be_removed_after_the_deadline() -> None:
    late = running(spec={"deadlineSeconds": 30})
    for slices, reason in (((0, 0), "TimedOut"), ((23, 24), "TimedOut"), ((24, 24), "Running")):
        decision = benchmarks.reconcile(late, measured(*slices), world(), NOW)
        assert succeeded(decision)[1] == reason
        assert decision.cancel == (reason != "Running")


def test_results_that_no_config_map_holds_are_a_failure() -> None:
    for size, good in ((RESULTS_LIMIT - 2, True), (RESULTS_LIMIT - 1, False)):
        decision = benchmarks.reconcile(running(), measured(results={}, table="x" * size), world(), NOW)
        assert (succeeded(decision)[0] == "True") == good
        assert any(isinstance(action, Create) for action in decision.plan.actions) == good


@pytest.mark.parametrize(
    ("made", "measurement", "reason", "says"),
    [
        (running(), measured(error="no keys.jsonl"), "Failed", "no keys.jsonl"),
        (running(annotations={"shai.dev/cancel": "true"}), measured(1, 2), "Cancelled", "annotation"),
        (running(generation=2), measured(1, 2), "Failed", "spec was changed after the start"),
        (running(spec={"deadlineSeconds": 30}), measured(1, 2), "TimedOut", "raise spec.deadlineSeconds"),
    ],
)
def test_a_measurement_that_is_ended_is_cancelled(
    made: Object, measurement: Measurement, reason: str, says: str
) -> None:
    decision = benchmarks.reconcile(made, measurement, world(), NOW)
    assert decision.cancel
    assert succeeded(decision) == ("False", reason)
    assert says in message(decision)
    assert bool([a for a in decision.plan.actions if isinstance(a, Emit)]) == (reason != "Cancelled")


def test_a_measurement_that_went_with_the_operator_begins_anew() -> None:
    decision = benchmarks.reconcile(running(), None, world(), NOW)
    assert decision.start is not None
    assert [action.reason for action in decision.plan.actions if isinstance(action, Emit)] == ["Restarted"]


def test_a_finished_one_is_left_alone_and_a_deleted_one_cancelled() -> None:
    for made in (
        benchmark(status={"conditions": [condition("Succeeded", "False")]}),
        benchmark(deletionTimestamp=STARTED),
    ):
        decision = benchmarks.reconcile(made, measured(1, 2), world(), NOW)
        assert decision == Decision(Plan(), None, cancel=True)
