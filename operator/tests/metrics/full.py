# SPDX-License-Identifier: BSD-2-Clause
"""A snapshot that has every metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from shai_operator.metrics import exposition
from shai_operator.metrics.exposition import Format
from shai_operator.metrics.samples import CANARY, COMPLETED, STABLE, Sharing, Snapshot, objects
from shai_operator.reconcile.judging import Usage
from tests.reconcile.builders import OWNED, condition, inventory, resource

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Object

POOL = resource(
    "JailPool",
    "default",
    {"provider": "linux", "replicas": 3, "hosts": [{"name": "red"}, {"name": "lost", "state": "Gone"}]},
    {
        "replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 2,
        "namespaces": [
            {"name": "search", "uid": "uid-search-1", "stableRelease": "old", "candidateRelease": "new",
             "rollout": {"release": "new", "step": 1, "steps": 2, "reason": "Inconclusive"}},
        ],
        "hosts": [
            {"name": "red", "reached": "True", "freeMemoryMebibytes": 2048, "virtualMachines": 2, "jails": 3},
            {"name": "blue", "reached": "False", "freeMemoryMebibytes": 0, "virtualMachines": 1, "jails": 1},
            {"name": "new", "reached": "Unknown", "freeMemoryMebibytes": 0, "virtualMachines": 0, "jails": 0},
            {"name": "locked", "reached": "Unknown", "freeMemoryMebibytes": 0, "virtualMachines": 0, "jails": 0,
             "message": "the host does not let user root in"},
            {"name": "lost", "reached": "False", "freeMemoryMebibytes": 0, "virtualMachines": 0, "jails": 0,
             "message": "given up: spec says that it is gone"},
        ],
        "virtualMachines": [
            {"name": "default-vm-0", "host": "red", "state": "Running", "jails": 2},
            {"name": "default-vm-1", "host": "red", "state": "Broken", "jails": 1, "message": "exit code 3"},
            {"name": "default-vm-2", "host": "blue", "state": "Unknown", "jails": 1},
            {"name": "default-vm-3", "state": "Pending", "jails": 1},
        ],
        "members": [
            {"name": "default-0", "ordinal": 0, "host": "red", "address": "10.0.0.1", "image": "v1", "release": "new",
             "configuration": "c", "ready": "True", "reason": "Ready", "message": "fine", **OWNED},
            {"name": "default-1", "ordinal": 1, "ready": "False", "reason": "Unreachable", "message": "no answer",
             **OWNED},
        ],
    },
)  # fmt: skip
POLICY = resource(
    "Policy", "friends", {"mode": "Warn"}, {"stableRevision": "friends-1", "candidateRevision": "friends-2"}
)
PIPELINE = resource(
    "Pipeline", "syse", {}, {"conditions": [condition("Ready", "True"), condition("Analyzed", "Unknown")]}
)


def run(name: str, reason: str, completed: str, **status: Any) -> Object:
    """Make an AnalysisRun of the pipeline."""
    state = "True" if reason == "Complete" else "False"
    known = {"conditions": [condition("Succeeded", state, reason)], "completionTime": completed, **status}
    return resource("AnalysisRun", name, {"pipeline": "syse", "trigger": "Change"}, known)


RUNS = (
    run("first", "Complete", "2026-06-01T12:00:00Z", accesses=[{"task": "gone"}], durationMilliseconds=100),
    run(
        "second", "Complete", "2026-06-01T13:00:00Z", durationMilliseconds=2500,
        accesses=[{"task": "indexer"}, {"task": "worker"}],
        warnings=[{"task": "worker", "message": "may read nothing", "instances": 3},
                  {"task": "worker", "message": "may write nothing", "instances": 2}],
    ),
    run("third", "Failed", "2026-06-01T14:00:00Z", accesses=[{"task": "other"}]),
)  # fmt: skip


def figure(name: str, value: str, low: str = "", high: str = "") -> dict[str, str]:
    """Make a figure of a Benchmark's table; without ends of an interval when one round was measured."""
    return {"name": name, "value": value} | ({"low": low, "high": high} if low else {})


BENCHMARK = resource(
    "Benchmark",
    "overhead",
    {"pipeline": "syse"},
    {
        "conditions": [condition("Succeeded", "True", "Complete")],
        "completionTime": "2026-06-01T12:00:00Z",
        "progress": {"done": 5, "total": 6},
        "thresholds": [
            {"threshold": "overhead>5%", "exceeded": "True"},
            {"threshold": "p99>20ms", "exceeded": "False"},
        ],
        "table": [
            {"sessionLength": 8, "mode": "baseline", "figures": [figure("queriesPerSecond", "1740.123456789")]},
            {"sessionLength": 8, "mode": "shai", "figures": [
                figure("queriesPerSecond", "1435.5", "1400", "1500"), figure("cpuSecondsPerQuery", "0.000687"),
                figure("cpuSecondsPerSession", "0.0055"), figure("interceptionsPerSession", "3"),
                figure("paperThroughputOverheadRatio", "0.0045"),
                figure("cpuAddedSecondsPerQuery", "6.07e-05", "-1.22e-05", "7.42e-05"),
                figure("cpuAddedSecondsPerSession", "0.000547", "0.000498", "0.001153"),
                figure("cpuOverheadRatio", "0.289", "0.206", "0.322"), figure("throughputOverheadRatio", "0.175"),
                figure("latencySecondsP50", "0.002"), figure("latencySecondsP90", "0.003"),
                figure("latencySecondsP99", "0.004"), figure("unheardOf", "1"), figure("cpuSecondsPerQuery", "many"),
            ]},
        ],
    },
)  # fmt: skip

SHARING = Sharing("default", "search")
TRACKS = {STABLE: Usage(200, 1000, 10, 400_000), CANARY: Usage(100, 400, 100, 300_000)}


def snapshot(*present: Object) -> Snapshot:
    """Return a snapshot with these objects, or with one of each kind."""
    known = present or (POOL, POLICY, PIPELINE, *RUNS, BENCHMARK)
    return Snapshot(
        objects=objects(inventory(*known)),
        tracks={SHARING: TRACKS},
        rollouts={SHARING: {COMPLETED: 4}},
        version="v1",
        certificate_ends=1.8e9,
    )


def series(taken: Snapshot) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the samples that Prometheus reads, by name and sorted labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(exposition.text(taken, Format.PLAIN).decode())
        for sample in family.samples
    }
