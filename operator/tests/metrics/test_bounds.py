# SPDX-License-Identifier: BSD-2-Clause
"""Who may make objects in a namespace can make any number: each namespace has a bounded number of series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds.kinds import pipeline
from shai_operator.metrics import exposition
from tests.metrics import full
from tests.reconcile.builders import condition, resource

if TYPE_CHECKING:
    import pytest

    from shai_operator.reconcile.objects import Object

LEFT_OUT = "shai_operator_series_left_out"


def told(metric: str, label: str, *present: Object) -> dict[str, list[str]]:
    """Return the values of a label of a metric's series, by namespace."""
    found: dict[str, list[str]] = {}
    for name, labels in full.series(full.snapshot(*present)):
        if name == metric:
            found.setdefault(dict(labels)["namespace"], []).append(dict(labels)[label])
    return found


def left_out(*present: Object) -> dict[str, float]:
    found = full.series(full.snapshot(*present))
    return {dict(labels)["namespace"]: value for (name, labels), value in found.items() if name == LEFT_OUT}


def policy(number: int, namespace: str = "search") -> Object:
    return resource("Policy", f"policy-{number}", {"mode": "Enforce"}, namespace=namespace)


def test_a_namespace_has_so_many_series_of_a_metric_and_takes_no_place_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exposition, "SERIES", 4)
    crowd = [policy(number, "a-crowd") for number in range(9)]
    present = *crowd, policy(7), *full.RUNS
    exported = {"a-crowd": [f"policy-{number}" for number in range(4)], "search": ["policy-7"]}
    assert told("shai_policy_revision_info", "policy", *present) == exported
    assert told("shai_policy_revision_info", "policy", *reversed(present)) == exported
    assert left_out(*present) == {"a-crowd": 5, "search": 0}
    assert told("shai_analysis_run_info", "run", *present) == {"search": ["third", "second", "first"]}


def test_what_is_left_out_of_several_metrics_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SERIES", 1)
    assert left_out(policy(1), policy(2), *full.RUNS) == {"search": 1 + 2 + 1 + 1}


def test_series_that_occur_twice_are_left_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SERIES", 2)
    rows = [
        {"mode": "shai", "sessionLength": length, "figures": [full.figure("queriesPerSecond", "1")]}
        for length in range(5)
    ]
    known = {"table": rows + rows, "completionTime": "2026-06-01T12:00:00Z"}
    assert left_out(resource("Benchmark", "a", {"pipeline": "syse"}, known)) == {"search": 3}


def test_the_newest_analysis_runs_are_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SERIES", 2)
    made = {"a": "2026-06-01T12:00:00Z", "b": "2026-06-01T14:00:00Z", "c": "2026-06-01T13:00:00Z"}
    runs = [resource("AnalysisRun", name, {"pipeline": "syse"}, creationTimestamp=at) for name, at in made.items()]
    assert told("shai_analysis_run_info", "run", *runs) == {"search": ["b", "c"]}


def test_analysis_runs_that_have_not_ended_come_before_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SERIES", 2)
    running = {"conditions": [condition("Succeeded", "Unknown", "Running")]}
    old = resource("AnalysisRun", "old", {"pipeline": "syse"}, running, creationTimestamp="2026-05-01T12:00:00Z")
    assert told("shai_analysis_run_info", "run", old, *full.RUNS) == {"search": ["old", "third"]}


def test_benchmarks_that_have_not_ended_come_first_and_then_those_that_ended_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exposition, "SERIES", 6)

    def benchmark(name: str, state: str, **status: object) -> Object:
        known = {"progress": {"done": 1, "total": 2}, "conditions": [condition("Succeeded", state)], **status}
        return resource("Benchmark", name, {"pipeline": "syse"}, known)

    ended = [benchmark(f"c-{hour}", "True", completionTime=f"2026-06-01T{hour}:00:00Z") for hour in (13, 15, 14)]
    present = *ended, benchmark("a-runs", "Unknown"), resource("Benchmark", "b-waits", {"pipeline": "syse"})
    exported = {"search": ["b-waits", "b-waits", "a-runs", "a-runs", "c-15", "c-15"]}
    assert told("shai_benchmark_slices", "benchmark", *present) == exported
    assert left_out(*present) == {"search": 4}


def test_series_of_pools_are_all_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Administrators make them; the namespace that they name is the one that they serve."""
    monkeypatch.setattr(exposition, "SERIES", 1)
    found = told("shai_member_ready", "member", full.POOL)
    assert found == {"search": ["default-0", "default-1"]}
    assert left_out(full.POOL) == {}


def test_5000_policies_and_500_pipelines_of_a_namespace_are_exported() -> None:
    known = {"conditions": [condition(kind, "True") for kind in pipeline.PIPELINE.conditions]}
    present = [policy(number) for number in range(5000)]
    present += [resource("Pipeline", f"pipeline-{number}", {}, known) for number in range(500)]
    assert left_out(*present) == {"search": 0}
    assert len(set(told("shai_pipeline_condition", "pipeline", *present)["search"])) == 500
