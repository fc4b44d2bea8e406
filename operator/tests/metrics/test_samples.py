# SPDX-License-Identifier: BSD-2-Clause
"""Each metric has the value that the objects say, and none when there is no object."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from crds.kinds.benchmark import FIGURES
from shai_operator.metrics import benchmarks
from shai_operator.metrics.samples import Snapshot, objects
from tests.metrics import full
from tests.reconcile.builders import inventory

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Object

FOUND = full.series(full.snapshot())
POOL = {"pool": "default", "namespace": "search"}
SERIES = {"namespace": "search", "benchmark": "overhead", "pipeline": "syse", "mode": "shai", "session_length": "8"}
RUN = {"namespace": "search", "pipeline": "syse"}


def value(name: str, **labels: str) -> float | None:
    return FOUND.get((name, tuple(sorted(labels.items()))))


@pytest.mark.parametrize(
    ("name", "labels", "wanted"),
    [
        ("shai_operator_build_info", {"version": "v1"}, 1),
        ("shai_operator_scrape_certificate_expiry_timestamp_seconds", {}, 1.8e9),
        ("shai_operator_series_left_out", {"namespace": "search"}, 0),
        ("shai_pool_members", {**POOL, "provider": "linux", "state": "desired"}, 3),
        ("shai_pool_members", {**POOL, "provider": "linux", "state": "current"}, 2),
        ("shai_pool_members", {**POOL, "provider": "linux", "state": "ready"}, 1),
        ("shai_pool_members", {**POOL, "provider": "linux", "state": "updated"}, 2),
        ("shai_member_info", {**POOL, "member": "default-0", "provider": "linux", "host": "red", "image": "v1",
                              "release": "new"}, 1),
        ("shai_member_ready", {**POOL, "member": "default-0"}, 1),
        ("shai_member_ready", {**POOL, "member": "default-1"}, 0),
        ("shai_host_reached", {**POOL, "host": "red"}, 1),
        ("shai_host_reached", {**POOL, "host": "blue"}, 0),
        ("shai_host_reached", {**POOL, "host": "new"}, None),
        ("shai_host_reached", {**POOL, "host": "locked"}, 0),
        ("shai_host_reached", {**POOL, "host": "lost"}, None),
        ("shai_host_free_memory_bytes", {**POOL, "host": "red"}, 2 * 1024**3),
        ("shai_host_jails", {**POOL, "host": "red"}, 3),
        ("shai_virtual_machines", {**POOL, "host": "red", "state": "running"}, 1),
        ("shai_virtual_machines", {**POOL, "host": "red", "state": "broken"}, 1),
        ("shai_virtual_machines", {**POOL, "host": "red", "state": "stopped"}, 0),
        ("shai_virtual_machines", {**POOL, "host": "blue", "state": "unknown"}, 1),
        ("shai_virtual_machines", {**POOL, "host": "new", "state": "running"}, 0),
        ("shai_rollout_info", {**POOL, "stable": "old", "candidate": "new", "reason": "Inconclusive"}, 1),
        ("shai_rollout_step", POOL, 1),
        ("shai_rollout_steps", POOL, 2),
        ("shai_rollout_track_denial_ratio", {**POOL, "track": "stable"}, 0.01),
        ("shai_rollout_track_denial_ratio", {**POOL, "track": "canary"}, 0.25),
        ("shai_rollout_track_decision_seconds_per_session", {**POOL, "track": "stable"}, 0.002),
        ("shai_rollout_track_decision_seconds_per_session", {**POOL, "track": "canary"}, 0.003),
        ("shai_rollout_track_sessions", {**POOL, "track": "canary"}, 100),
        ("shai_rollouts_total", {**POOL, "result": "completed"}, 4),
        ("shai_rollouts_total", {**POOL, "result": "rolled_back"}, 0),
        ("shai_policy_revision_info", {"namespace": "search", "policy": "friends", "mode": "Warn",
                                       "stable": "friends-1", "candidate": "friends-2"}, 1),
        ("shai_pipeline_condition", {**RUN, "type": "Ready", "status": "true"}, 1),
        ("shai_pipeline_condition", {**RUN, "type": "Ready", "status": "false"}, 0),
        ("shai_pipeline_condition", {**RUN, "type": "Analyzed", "status": "unknown"}, 1),
        ("shai_analysis_blocked_accesses", {**RUN, "task": "indexer"}, 0),
        ("shai_analysis_blocked_accesses", {**RUN, "task": "worker"}, 5),
        ("shai_analysis_blocked_accesses", {**RUN, "task": "gone"}, None),
        ("shai_analysis_blocked_accesses", {**RUN, "task": "other"}, None),
        ("shai_analysis_run_info", {**RUN, "run": "third", "trigger": "Change", "reason": "Failed"}, 1),
        ("shai_analysis_run_duration_seconds", {**RUN, "run": "second"}, 2.5),
        ("shai_analysis_run_duration_seconds", {**RUN, "run": "third"}, None),
        ("shai_benchmark_queries_per_second", {**SERIES, "mode": "baseline"}, 1740.123456789),
        ("shai_benchmark_queries_per_second", SERIES, 1435.5),
        ("shai_benchmark_cpu_seconds_per_query", SERIES, 0.000687),
        ("shai_benchmark_cpu_added_seconds_per_query", {**SERIES, "bound": "low"}, -1.22e-05),
        ("shai_benchmark_cpu_added_seconds_per_session", {**SERIES, "bound": "high"}, 0.001153),
        ("shai_benchmark_throughput_overhead_ratio", {**SERIES, "bound": "value"}, 0.175),
        ("shai_benchmark_throughput_overhead_ratio", {**SERIES, "bound": "low"}, None),
        ("shai_benchmark_latency_seconds", {**SERIES, "quantile": "0.99"}, 0.004),
        ("shai_benchmark_completion_timestamp_seconds",
         {"namespace": "search", "benchmark": "overhead", "pipeline": "syse"}, 1780315200),
        ("shai_benchmark_slices", {"namespace": "search", "benchmark": "overhead", "pipeline": "syse",
                                   "state": "planned"}, 6),
        ("shai_benchmark_threshold_exceeded", {"namespace": "search", "benchmark": "overhead", "pipeline": "syse",
                                               "threshold": "overhead>5%"}, 1),
        ("shai_benchmark_threshold_exceeded", {"namespace": "search", "benchmark": "overhead", "pipeline": "syse",
                                               "threshold": "p99>20ms"}, 0),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)  # fmt: skip
def test_values(name: str, labels: dict[str, str], wanted: float | None) -> None:
    assert value(name, **labels) == wanted


def test_deleted_objects_have_no_series() -> None:
    for left_out in (full.POOL, full.POLICY, full.PIPELINE, full.BENCHMARK):
        present = [obj for obj in (full.POOL, full.POLICY, full.PIPELINE, full.BENCHMARK) if obj is not left_out]
        gone = FOUND.keys() - full.series(full.snapshot(*present, *full.RUNS)).keys()
        assert any(left_out["metadata"]["name"] in dict(labels).values() for _, labels in gone)
    empty = full.series(Snapshot(objects=objects(inventory())))
    assert [name for name, _ in empty if not name.startswith(("python_", "process_", "shai_operator_"))] == []


def changed(obj: Object, part: str, **fields: Any) -> Object:
    found: dict[str, Any] = copy.deepcopy(dict(obj))
    found[part] = {**found[part], **fields}
    return found


def test_a_pool_that_is_deleted_wants_no_members() -> None:
    found = full.series(full.snapshot(changed(full.POOL, "metadata", deletionTimestamp="2026-06-01T13:00:00Z")))
    labels = {**POOL, "provider": "linux", "state": "desired"}
    assert found["shai_pool_members", tuple(sorted(labels.items()))] == 0


def test_a_benchmark_that_failed_did_not_complete() -> None:
    failed = full.series(full.snapshot(changed(full.BENCHMARK, "status", conditions=[])))
    assert not [name for name, _ in failed if name == "shai_benchmark_completion_timestamp_seconds"]


@pytest.mark.parametrize("evil", ['"} 1\nshai_ready 0\n', "a\\", "</script>", "😀\u202e", "x" * 65536])
def test_no_value_of_an_object_becomes_another_series(evil: str) -> None:
    """The schemas allow such values in few places, but the text must be right whatever they are."""
    rows = [{**row, "host": evil, "image": evil, "release": evil} for row in full.POOL["status"]["members"]]
    thresholds = [{"threshold": evil, "exceeded": "True"}]
    present = changed(full.POOL, "status", members=rows), changed(full.BENCHMARK, "status", thresholds=thresholds)
    found = full.series(full.snapshot(*present))
    assert {name for name, _ in found if not name.startswith("shai_operator_")} <= {name for name, _ in FOUND}
    assert [dict(labels)["threshold"] for name, labels in found if name == "shai_benchmark_threshold_exceeded"] == [
        evil
    ]


def test_messages_are_no_labels() -> None:
    values = {text for _, labels in FOUND for _, text in labels}
    assert not values & {"fine", "no answer", "may read nothing", "may write nothing"}


def test_what_occurs_twice_counts_once() -> None:
    row = full.BENCHMARK["status"]["table"][0]
    twice = {**row, "figures": [full.figure("queriesPerSecond", "2")]}
    found = full.series(full.snapshot(changed(full.BENCHMARK, "status", table=[row, twice])))
    labels = {**SERIES, "mode": "baseline"}
    assert found["shai_benchmark_queries_per_second", tuple(sorted(labels.items()))] == 1740.123456789


def test_only_the_last_benchmarks_of_a_pipeline_have_figures() -> None:
    def made(number: int, pipeline: str) -> Object:
        named = changed(full.BENCHMARK, "metadata", name=f"{pipeline}-{number:02}")
        ended = changed(named, "status", completionTime=f"2026-06-01T12:00:{number:02}Z")
        return changed(ended, "spec", pipeline=pipeline)

    many = [made(number, "syse") for number in reversed(range(benchmarks.TABLES + 2))]
    found = full.series(full.snapshot(made(0, "other"), *many))

    def told(metric: str) -> set[str]:
        return {dict(labels)["benchmark"] for name, labels in found if name == metric}

    everyone = {"other-00", *(f"syse-{number:02}" for number in range(benchmarks.TABLES + 2))}
    assert told("shai_benchmark_queries_per_second") == everyone - {"syse-00", "syse-01"}
    assert told("shai_benchmark_slices") == everyone


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_a_benchmark_is_exported(name: str) -> None:
    rows = [{"sessionLength": 8, "mode": "shai", "figures": [full.figure(name, "0.125", "0.0625", "0.25")]}]
    found = full.series(full.snapshot(changed(full.BENCHMARK, "status", table=rows)))
    values = {value for (_, labels), value in found.items() if ("mode", "shai") in labels}
    assert values in ({0.125}, {0.125, 0.0625, 0.25})
