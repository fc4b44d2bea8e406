# SPDX-License-Identifier: BSD-2-Clause
"""The table of the operator's metrics: the only place that says which there are and what they mean.

``python -m shai_operator metrics`` prints it, and the reference page is generated from it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

GAUGE, COUNTER, HISTOGRAM, SUMMARY = "gauge", "counter", "histogram", "summary"
SECONDS, RATIO = "seconds", "ratio"
LEFT_OUT = "shai_operator_series_left_out"


@dataclass(frozen=True)
class Label:
    """A label, and the meaning of its values."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Metric:
    """One metric. ``unit`` is empty for counts, and for metrics that only carry labels."""

    name: str
    type: str
    labels: tuple[Label, ...]
    unit: str
    meaning: str

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of its labels, in the order in which values are given."""
        return tuple(label.name for label in self.labels)

    @property
    def of_users(self) -> bool:
        """Whether its series are of objects that users of a namespace make: the namespace is the first label."""
        return self.label_names[:1] == (_NAMESPACE.name,)


_KIND = Label("kind", "kind of the objects")
_POOL = Label("pool", "name of the JailPool")
_NAMESPACE = Label(
    "namespace",
    "namespace of the objects; of a member: the one that it belongs to; of a pool: the one that it serves, empty when "
    "it serves several",
)
_MEMBER = Label("member", "name of the member")
_PIPELINE = Label("pipeline", "name of the Pipeline")
_STABLE = Label("stable", "what is in force on members that take part in no rollout; empty: nothing")
_CANDIDATE = Label("candidate", "what is being rolled out; empty: nothing")
_TRACK = Label("track", "stable: members without the change, canary: members with it")
_RUN = Label("run", "name of the AnalysisRun")
_BENCHMARK = Label("benchmark", "name of the Benchmark")
_BOUND = Label("bound", "value: the estimate; low, high: the ends of its 95 % interval")

_OF_POOL = (_POOL, _NAMESPACE)
_OF_MEMBER = (_POOL, _NAMESPACE, _MEMBER)
_OF_HOST = (*_OF_POOL, Label("host", "name of a host that the pool lists"))
_OF_PIPELINE = (_NAMESPACE, _PIPELINE)
_OF_BENCHMARK = (_NAMESPACE, _BENCHMARK, _PIPELINE)
_OF_SERIES = (
    *_OF_BENCHMARK,
    Label("mode", "mode of the pipeline; control: a second installation in mode baseline"),
    Label("session_length", "queries of a session; 0: one session for the whole slice"),
)

METRICS: tuple[Metric, ...] = (
    # The operator itself.
    Metric(
        "shai_operator_build_info",
        GAUGE,
        (Label("version", "version of Shai"),),
        "",
        "The operator that runs; always 1.",
    ),
    Metric("shai_operator_reconcile_seconds", HISTOGRAM, (_KIND,), SECONDS, "Time of one reconciliation."),
    Metric(
        "shai_operator_reconcile_errors_total", COUNTER, (_KIND,), "", "Reconciliations that failed and are repeated."
    ),
    Metric("shai_operator_leading", GAUGE, (), "", "1 when this replica of the operator leads, otherwise 0."),
    Metric("shai_operator_queue_depth", GAUGE, (), "", "Objects that wait to be reconciled."),
    Metric(
        "shai_operator_watch_lag_seconds",
        GAUGE,
        (_KIND,),
        SECONDS,
        "For how long a watch has been behind the API server.",
    ),
    Metric(
        "shai_operator_api_requests_total",
        COUNTER,
        (Label("verb", "what was asked of the API server"), _KIND),
        "",
        "Requests to the API server.",
    ),
    Metric(
        "shai_operator_scrapes_rejected_total",
        COUNTER,
        (),
        "",
        "Connections to probes and metrics that were closed because there were too many.",
    ),
    Metric(
        "shai_operator_admissions_rejected_total",
        COUNTER,
        (),
        "",
        "Connections for admission that were closed because there were too many.",
    ),
    Metric(
        "shai_operator_scrape_certificate_expiry_timestamp_seconds",
        GAUGE,
        (),
        SECONDS,
        "When the certificate for scraping that the operator has handed out expires, in seconds since 1970.",
    ),
    Metric(
        LEFT_OUT,
        GAUGE,
        (_NAMESPACE,),
        "",
        "Series of a namespace's objects that are not exported, because the namespace has more of a metric than the "
        "operator exports.",
    ),
    # Pools and their members.
    Metric(
        "shai_pool_members",
        GAUGE,
        (
            *_OF_POOL,
            Label("provider", "where members are installed: local, linux, bhyve"),
            Label(
                "state",
                "desired: by the spec; current: that exist; ready: that serve their bundle; available: ready and not "
                "being changed; updated: with the newest configuration and release",
            ),
        ),
        "",
        "Members of a pool.",
    ),
    Metric(
        "shai_member_info",
        GAUGE,
        (
            *_OF_MEMBER,
            Label("provider", "where it is installed: local, linux, bhyve"),
            Label("host", "name of its host; empty: the operator's own machine"),
            Label("image", "image that is installed"),
            Label("release", "release in force; empty: none"),
        ),
        "",
        "A member, and what it has; always 1.",
    ),
    Metric("shai_member_ready", GAUGE, _OF_MEMBER, "", "1 when the member serves its bundle, otherwise 0."),
    # Hosts of virtual machines.
    Metric(
        "shai_host_reached",
        GAUGE,
        _OF_HOST,
        "",
        "1 when the operator's last look at a host succeeded, otherwise 0. A host that is given up has none.",
    ),
    Metric(
        "shai_host_free_memory_bytes",
        GAUGE,
        _OF_HOST,
        "bytes",
        "Free memory of a host at the last look that succeeded, in steps of 256 MiB.",
    ),
    Metric("shai_host_jails", GAUGE, _OF_HOST, "", "Members of a pool that are placed on a host, each in a jail."),
    Metric(
        "shai_virtual_machines",
        GAUGE,
        (
            *_OF_HOST,
            Label(
                "state",
                "running, stopped, broken: as the host says; pending: not made yet; replacing: being replaced; "
                "unknown: the host is not reached",
            ),
        ),
        "",
        "Virtual machines of a pool that are placed on a host.",
    ),
    # Rollouts.
    Metric(
        "shai_rollout_info",
        GAUGE,
        (
            *_OF_POOL,
            _STABLE,
            _CANDIDATE,
            Label(
                "reason", "reason of the condition RolledOut, such as Complete, Progressing, Inconclusive, RolledBack"
            ),
        ),
        "",
        "The releases of a pool, and the state of its rollout; always 1.",
    ),
    Metric("shai_rollout_step", GAUGE, _OF_POOL, "", "Step of the rollout that is under way; 0: none, or not begun."),
    Metric("shai_rollout_steps", GAUGE, _OF_POOL, "", "Steps of the rollout that is under way; 0: none."),
    Metric(
        "shai_rollout_track_denial_ratio",
        GAUGE,
        (*_OF_POOL, _TRACK),
        RATIO,
        "Denials among the decisions of the members that a step compares, from 0 to 1.",
    ),
    Metric(
        "shai_rollout_track_decision_seconds_per_session",
        GAUGE,
        (*_OF_POOL, _TRACK),
        SECONDS,
        "Time that the monitors of the members that a step compares spend on decisions, for each session.",
    ),
    Metric(
        "shai_rollout_track_sessions",
        GAUGE,
        (*_OF_POOL, _TRACK),
        "",
        "Sessions of the members that a step compares, since the step has been watched.",
    ),
    Metric(
        "shai_rollouts_total",
        COUNTER,
        (*_OF_POOL, Label("result", "completed, rolled_back")),
        "",
        "Rollouts that ended while this operator ran.",
    ),
    Metric(
        "shai_policy_revision_info",
        GAUGE,
        (
            _NAMESPACE,
            Label("policy", "name of the Policy"),
            Label("mode", "Audit, Warn, Enforce"),
            _STABLE,
            _CANDIDATE,
        ),
        "",
        "The PolicyRevisions of a policy; always 1.",
    ),
    # Pipelines and their analyses.
    Metric(
        "shai_pipeline_condition",
        GAUGE,
        (
            *_OF_PIPELINE,
            Label("type", "type of the condition"),
            Label("status", "true, false, unknown"),
        ),
        "",
        "A condition of a pipeline: 1 for the status that it has, 0 for the others.",
    ),
    Metric(
        "shai_analysis_blocked_accesses",
        GAUGE,
        (*_OF_PIPELINE, Label("task", "name of the task")),
        "",
        "Expected accesses of instances to a group of conduits of which nothing is granted, so that the task cannot do "
        "its work for them; by the last complete AnalysisRun.",
    ),
    Metric(
        "shai_analysis_run_info",
        GAUGE,
        (
            *_OF_PIPELINE,
            _RUN,
            Label("trigger", "what has started it: Change, Schedule, Manual"),
            Label("reason", "reason of the condition Succeeded, such as Running, Complete, Failed"),
        ),
        "",
        "An AnalysisRun; always 1.",
    ),
    Metric(
        "shai_analysis_run_duration_seconds",
        GAUGE,
        (*_OF_PIPELINE, _RUN),
        SECONDS,
        "Time of the analysis on the member on which it took longest.",
    ),
    # Benchmarks.
    Metric("shai_benchmark_queries_per_second", GAUGE, _OF_SERIES, "", "Queries per second."),
    Metric("shai_benchmark_cpu_seconds_per_query", GAUGE, _OF_SERIES, SECONDS, "CPU time of a query."),
    Metric(
        "shai_benchmark_cpu_seconds_per_session", GAUGE, _OF_SERIES, SECONDS, "CPU time of a session with its queries."
    ),
    Metric(
        "shai_benchmark_cpu_added_seconds_per_query",
        GAUGE,
        (*_OF_SERIES, _BOUND),
        SECONDS,
        "CPU time of a query beyond that in mode baseline.",
    ),
    Metric(
        "shai_benchmark_cpu_added_seconds_per_session",
        GAUGE,
        (*_OF_SERIES, _BOUND),
        SECONDS,
        "CPU time that the mode adds to a session itself, without what it adds to its queries.",
    ),
    Metric(
        "shai_benchmark_cpu_overhead_ratio",
        GAUGE,
        (*_OF_SERIES, _BOUND),
        RATIO,
        "CPU time of a query beyond that in mode baseline, as a share of the latter; 0.05 is 5 %.",
    ),
    Metric(
        "shai_benchmark_throughput_overhead_ratio",
        GAUGE,
        (*_OF_SERIES, _BOUND),
        RATIO,
        "Share of the queries per second of mode baseline that is lost; 0.05 is 5 %.",
    ),
    Metric(
        "shai_benchmark_latency_seconds",
        SUMMARY,
        (*_OF_SERIES, Label("quantile", "0.5, 0.9, 0.99")),
        SECONDS,
        "Latency of a query.",
    ),
    Metric(
        "shai_benchmark_interceptions_per_session",
        GAUGE,
        _OF_SERIES,
        "",
        "How often the monitor or a supervisor is asked in a session, apart from its queries.",
    ),
    Metric(
        "shai_benchmark_paper_throughput_overhead_ratio",
        GAUGE,
        _OF_SERIES,
        RATIO,
        "The throughput overhead in Table I of the paper.",
    ),
    Metric(
        "shai_benchmark_completion_timestamp_seconds",
        GAUGE,
        _OF_BENCHMARK,
        SECONDS,
        "When the Benchmark completed successfully, in seconds since 1970.",
    ),
    Metric(
        "shai_benchmark_slices",
        GAUGE,
        (*_OF_BENCHMARK, Label("state", "done, planned")),
        "",
        "Slices of the measurement.",
    ),
    Metric(
        "shai_benchmark_threshold_exceeded",
        GAUGE,
        (*_OF_BENCHMARK, Label("threshold", "the threshold, as the spec says it")),
        "",
        "1 when the results exceed a threshold of the spec, otherwise 0.",
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}


def as_json() -> list[dict[str, Any]]:
    """Return the table as plain JSON, in the form of ``shai metrics --output json``."""
    return [asdict(metric) for metric in METRICS]


def as_text() -> str:
    """Return the table for people: a paragraph for each metric."""
    return "\n".join(_paragraph(metric) for metric in METRICS)


def _paragraph(metric: Metric) -> str:
    kind = f"{metric.type}, {metric.unit}" if metric.unit else metric.type
    lines = [f"{metric.name} ({kind})", f"  {metric.meaning}"]
    lines += [f"    {label.name}: {label.meaning}" for label in metric.labels]
    return "\n".join(lines) + "\n"
