# SPDX-License-Identifier: BSD-2-Clause
"""Operator: whether it keeps up, and what it says of its objects."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries.selectors import OBJECT, or_zero

_OPERATOR = 'cluster=~"$cluster"'
_PROCESS = f'job="shai-operator",{_OPERATOR}'

PANELS = (
    Panel(
        "version",
        "Version",
        "Version of the operator that runs.",
        Kind.NAMES,
        "short",
        (Query(f"max by (version) (shai_operator_build_info{{{_OPERATOR}}})", "{{version}}"),),
    ),
    Panel(
        "queue",
        "Waiting",
        "Objects that wait to be reconciled.",
        Kind.STAT,
        "short",
        (Query(f"sum(shai_operator_queue_depth{{{_OPERATOR}}})", "objects"),),
        limits=(Limit(0, "good"), Limit(50, "warning"), Limit(500, "bad")),
        decimals=0,
    ),
    Panel(
        "errors",
        "Failed reconciliations",
        "Reconciliations in the chosen range that failed and are repeated.",
        Kind.STAT,
        "short",
        (
            Query(
                or_zero(
                    f"sum(increase(shai_operator_reconcile_errors_total{{{_OPERATOR}}}[$__range]))",
                    f"shai_operator_build_info{{{_OPERATOR}}}",
                ),
                "failed",
            ),
        ),
        limits=(Limit(0, "good"), Limit(1, "warning"), Limit(20, "bad")),
        decimals=0,
    ),
    Panel(
        "lag",
        "Watches behind",
        "For how long the watch that is furthest behind has missed the API server. The operator acts on nothing that "
        "is old.",
        Kind.STAT,
        "s",
        (Query(f"max(shai_operator_watch_lag_seconds{{{_OPERATOR}}})", "lag"),),
        limits=(Limit(0, "good"), Limit(30, "warning"), Limit(300, "bad")),
        decimals=0,
    ),
    Panel(
        "not-ready",
        "Conditions that are not true",
        "Pipelines' conditions with status false or unknown. The message is in the object: kubectl describe.",
        Kind.TABLE,
        "short",
        (
            Query(
                f'sum by (namespace, pipeline, type, status) (shai_pipeline_condition{{{OBJECT},status!="true"}} == 1)',
                "conditions",
            ),
        ),
        columns=(
            Column("namespace", "namespace"),
            Column("pipeline", "pipeline", "pipeline"),
            Column("type", "condition"),
            Column("status", "status"),
        ),
        decimals=0,
    ),
    Panel(
        "reconciliations",
        "Reconciliations per second, by kind",
        "How often the operator looks at objects of each kind.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(
                f"sum by (kind) (rate(shai_operator_reconcile_seconds_count{{{_OPERATOR}}}[$__rate_interval]))",
                "{{kind}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "duration",
        "Time of a reconciliation, by kind",
        "99th percentile. Installing a member is done beside, and not counted here.",
        Kind.TIMESERIES,
        "s",
        (
            Query(
                "histogram_quantile(0.99, sum by (le, kind) "
                f"(rate(shai_operator_reconcile_seconds_bucket{{{_OPERATOR}}}[$__rate_interval])))",
                "{{kind}}",
            ),
        ),
    ),
    Panel(
        "failures",
        "Failed reconciliations per second, by kind",
        "They are repeated, less and less often.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(
                f"sum by (kind) (rate(shai_operator_reconcile_errors_total{{{_OPERATOR}}}[$__rate_interval]))",
                "{{kind}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "requests",
        "Requests to the API server per second",
        "By verb.",
        Kind.TIMESERIES,
        "reqps",
        (
            Query(
                f"sum by (verb) (rate(shai_operator_api_requests_total{{{_OPERATOR}}}[$__rate_interval]))",
                "{{verb}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "waiting",
        "Objects that wait, and watches behind",
        "A queue that grows, or a watch that stays behind, means that the operator does not keep up.",
        Kind.TIMESERIES,
        "short",
        (
            Query(f"sum(shai_operator_queue_depth{{{_OPERATOR}}})", "objects that wait"),
            Query(f"max by (kind) (shai_operator_watch_lag_seconds{{{_OPERATOR}}})", "{{kind}}: seconds behind"),
        ),
    ),
    Panel(
        "resources",
        "CPU of the operator",
        "Processors' time of the operator's process.",
        Kind.TIMESERIES,
        "percentunit",
        (Query(f"sum(rate(process_cpu_seconds_total{{{_PROCESS}}}[$__rate_interval]))", "CPU"),),
    ),
    Panel(
        "memory",
        "Memory of the operator",
        "Resident memory of the operator's process.",
        Kind.TIMESERIES,
        "bytes",
        (Query(f"sum(process_resident_memory_bytes{{{_PROCESS}}})", "resident"),),
    ),
    Panel(
        "left-out",
        "Series left out, by namespace",
        "Series of objects that users made in a namespace, and that are on no board: the operator exports at most "
        "6,000 of a metric for each namespace. A ResourceQuota bounds the objects.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (namespace) (shai_operator_series_left_out{{{_OPERATOR}}})", "{{namespace}}"),),
        decimals=0,
    ),
)
