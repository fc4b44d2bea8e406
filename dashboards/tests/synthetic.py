# SPDX-License-Identifier: BSD-2-Clause
"""Samples of every metric in the programs' tables, with every label, over twenty minutes.

No label has an empty value and no counter stands still. So a query without a result names a metric or a label that
there is not.
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

END = 1_800_000_000
SECONDS = 1200
EVERY = 20

CHOSEN = {"cluster": "one", "namespace": "search", "pipeline": "syse", "mode": "shai", "member": "m-0"}
"""A value of each variable of the boards that the samples have."""

_MONITOR = {"job": "shai-monitor", "namespace": "search", "pool": "p"}
_TARGETS = tuple(
    (program, labels | {"cluster": cluster})
    for cluster in ("one", "two")
    for program, labels in (
        ("monitor", _MONITOR | {"member": "m-0", "instance": "m-0:1"}),
        ("monitor", _MONITOR | {"member": "m-1", "instance": "m-1:1"}),
        ("operator", {"job": "shai-operator", "instance": "operator:1"}),
        ("loadgen", {"job": "shai-loadgen", "namespace": "search", "instance": "load:1"}),
        ("loadgen", {"job": "shai-loadgen", "namespace": "other", "instance": "load:2"}),
    )
)
"""Labels that service discovery gives to what a program exports. Names can be the same in two clusters."""

_VALUES = {
    "pipeline": ("syse",),
    "namespace": ("search",),
    "member": ("m-0", "m-1"),
    "mode": ("baseline", "control", "dynamic", "shai"),
    "session_length": ("0", "1", "32"),
    "bound": ("value", "low", "high"),
    "found": ("chosen", "any"),
    "quantile": ("0.5", "0.99"),
    "allowed": ("true", "false"),
    "path": ("supervisor", "monitor"),
    "part": ("task", "supervisor"),
    "direction": ("reads", "writes"),
    "outcome": ("granted", "refused", "undecided"),
    "track": ("stable", "canary"),
    "status": ("true", "false", "unknown"),
}
"""Values that queries ask for by label, or that variables choose."""

_OF: dict[str, dict[str, tuple[str, ...]]] = {
    "mode": {"shai_pipeline_mode": ("baseline", "dynamic", "shai")},
    "state": {
        "shai_pool_members": ("desired", "current", "ready", "available", "updated"),
        "shai_virtual_machines": ("running", "stopped", "broken", "pending", "replacing", "unknown"),
        "shai_capability_sets": ("current", "stale"),
        "shai_benchmark_slices": ("done", "planned"),
    },
    "result": {
        "shai_session_bindings_total": ("analyzed", "mispredicted", "refused"),
        "shai_rollouts_total": ("completed", "rolled_back"),
        "shai_load_queries_total": ("ok", "failed"),
        "shai_load_accesses_total": ("ok", "refused"),
    },
}
"""The same where the values depend on the metric."""

_DESCRIBING = (
    "level", "trigger", "reason", "provider", "host", "image", "release", "version", "goversion", "hash", "label",
    "stable", "candidate",
)  # fmt: skip
"""Labels that have one value at a time for what the others name, and another for another member."""

_BUCKETS = ("0.001", "0.01", "0.1", "1.0", "+Inf")
PROCESS = (
    {"name": "process_cpu_seconds_total", "type": "counter", "labels": []},
    {"name": "process_resident_memory_bytes", "type": "gauge", "labels": []},
)
"""What the clients' libraries export besides."""


def _values(metric: str, label: str, whose: str) -> tuple[str, ...]:
    if label in _DESCRIBING:
        return (f"{label}-of-{whose}",)
    return _OF.get(label, {}).get(metric) or _VALUES.get(label) or (f"{label}-a", f"{label}-b")


def _labels(metric: dict[str, Any], target: dict[str, str]) -> Iterator[str]:
    """Return every combination of a metric's labels, with its target's."""
    names = [label["name"] for label in metric["labels"]]
    fixed = {name: value for name, value in target.items() if name not in names}
    whose = f"{target['instance']} in {target['cluster']}"
    for values in itertools.product(*(_values(metric["name"], name, whose) for name in names)):
        shown = fixed | dict(zip(names, values, strict=True))
        yield ",".join(f'{name}="{value}"' for name, value in sorted(shown.items()))


def _gauge(name: str, at: int) -> float:
    if name.endswith("_timestamp_seconds"):
        return END - SECONDS
    if name.endswith(("_info", "_mode", "_state", "_enforcement", "_condition", "_ready")):
        return 1
    return 1 + (at // EVERY + zlib.crc32(name.encode())) % 7


def _samples(metric: dict[str, Any], labels: str) -> Iterator[tuple[str, str]]:
    """Return what is written of one series: its name with labels, and its value at a time after it."""
    name, moments = metric["name"], range(END - SECONDS, END + 1, EVERY)
    speed = 1 + zlib.crc32(labels.encode()) % 5
    for at in moments:
        count = (at - END + SECONDS + EVERY) * speed
        if metric["type"] in {"gauge", "summary"}:
            yield f"{name}{{{labels}}}", f"{_gauge(name, at)} {at}"
        elif metric["type"] == "counter":
            yield f"{name}{{{labels}}}", f"{count} {at}"
        else:
            assert metric["type"] == "histogram", metric
            for place, bound in enumerate(_BUCKETS, start=1):
                yield f'{name}_bucket{{{labels},le="{bound}"}}', f"{count * place} {at}"
            yield f"{name}_count{{{labels}}}", f"{count * len(_BUCKETS)} {at}"
            yield f"{name}_sum{{{labels}}}", f"{count} {at}"


def exposition(tables: dict[str, list[dict[str, Any]]]) -> str:
    """Return samples of the metrics of each program, in OpenMetrics' text."""
    lines = []
    for program, target in _TARGETS:
        for metric in (*tables[program], *PROCESS):
            family = metric["name"].removesuffix("_total") if metric["type"] == "counter" else metric["name"]
            lines.append(f"# TYPE {family} {metric['type']}")
            lines += [
                f"{series} {value}" for labels in _labels(metric, target) for series, value in _samples(metric, labels)
            ]
    return "\n".join([*lines, "# EOF", ""])
