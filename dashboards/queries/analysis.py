# SPDX-License-Identifier: BSD-2-Clause
"""Analysis: how much is known ahead, and how fresh it is."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries.selectors import MEMBER, OBJECT, PIPELINE, PIPELINES, or_zero


def _quantiles(metric: str) -> tuple[Query, ...]:
    buckets = f"sum by (le) (rate({metric}_bucket{{{MEMBER}}}[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({quantile}, {buckets})", f"p{quantile * 100:g}") for quantile in (0.5, 0.99)
    )


PANELS = (
    Panel(
        "coverage",
        "Coverage",
        "Of the accesses that the last analysis of each pipeline expected and that no policy forbids: the part that is "
        "in capability sets, so that nobody is asked. The monitor decides on the others when they happen.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                f'sum(shai_analysis_accesses{{{PIPELINE},outcome="granted"}}) / '
                f'sum(shai_analysis_accesses{{{PIPELINE},outcome!="refused"}})',
                "granted",
            ),
        ),
        limits=(Limit(0, "bad"), Limit(0.5, "warning"), Limit(0.9, "good")),
        decimals=1,
    ),
    Panel(
        "age",
        "Age of the analysis",
        "Time since the oldest of the last successful analyses.",
        Kind.STAT,
        "s",
        (Query(f"time() - min(shai_analysis_last_success_timestamp_seconds{{{PIPELINE}}})", "age"),),
        limits=(Limit(0, "good"), Limit(86400, "warning"), Limit(7 * 86400, "bad")),
        decimals=0,
    ),
    Panel(
        "duration",
        "Duration",
        "Time that the last successful analysis took; the longest of the pipelines.",
        Kind.STAT,
        "s",
        (Query(f"max(shai_analysis_duration_seconds{{{PIPELINE}}})", "duration"),),
        limits=(Limit(0, "neutral"),),
        decimals=1,
    ),
    Panel(
        "stale",
        "Stale capability sets",
        "Capability sets that live sessions hold, and that are from before the newest bundle or facts. With revocation "
        "lazy, these sessions keep what they had; with immediate, sessions that lost something have ended.",
        Kind.STAT,
        "short",
        (Query(f'sum(shai_capability_sets{{{PIPELINE},state="stale"}})', "stale"),),
        limits=(Limit(0, "good"), Limit(1, "warning")),
        decimals=0,
    ),
    Panel(
        "stale-time",
        "Stale for",
        "For how long the oldest stale capability set has been stale.",
        Kind.STAT,
        "s",
        (Query(f"max(shai_capability_sets_stale_seconds{{{PIPELINE}}})", "stale"),),
        limits=(Limit(0, "good"), Limit(60, "warning"), Limit(600, "bad")),
        decimals=0,
    ),
    Panel(
        "mispredicted",
        "Sessions that were not foreseen",
        "Of the sessions in the chosen range: the part for which something differed from what the analysis expected.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                or_zero(
                    f'sum(increase(shai_session_bindings_total{{{PIPELINE},result="mispredicted"}}[$__range]))',
                    PIPELINES,
                )
                + " / "
                f"sum(increase(shai_session_bindings_total{{{PIPELINE}}}[$__range]))",
                "mispredicted",
            ),
        ),
        limits=(Limit(0, "good"), Limit(0.05, "warning"), Limit(0.5, "bad")),
        decimals=1,
    ),
    Panel(
        "accesses",
        "Expected accesses, by outcome",
        "granted: in a capability set. refused: the policy forbids it. undecided: it rests on something that is known "
        "only when the access happens.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (outcome) (shai_analysis_accesses{{{PIPELINE}}})", "{{outcome}}"),),
        colours="results",
        stacked=True,
    ),
    Panel(
        "size",
        "Size of the analysis",
        "Instances of tasks, classes of conduits that are decided alike, and conduits, in the last analysis.",
        Kind.TIMESERIES,
        "short",
        (
            Query(f"sum(shai_analysis_instances{{{PIPELINE}}})", "instances"),
            Query(f"sum(shai_analysis_classes{{{PIPELINE}}})", "classes"),
            Query(f"sum(shai_analysis_conduits{{{PIPELINE}}})", "conduits"),
        ),
    ),
    Panel(
        "durations",
        "Duration of analyses",
        "Time that the last successful analysis of each pipeline took, on the member on which it took longest.",
        Kind.TIMESERIES,
        "s",
        (Query(f"max by (pipeline) (shai_analysis_duration_seconds{{{PIPELINE}}})", "{{pipeline}}"),),
    ),
    Panel(
        "sets",
        "Capability sets",
        "Capability sets in force, by whether they reflect the newest bundle and facts.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (state) (shai_capability_sets{{{PIPELINE}}})", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "learned",
        "Added at run time per second",
        "learned: classes that a capability set gained because a session asked for a document. in the background: "
        "instances that were analysed when their first session began.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(f"sum(rate(shai_learned_classes_total{{{PIPELINE}}}[$__rate_interval]))", "learned"),
            Query(f"sum(rate(shai_background_analyses_total{{{PIPELINE}}}[$__rate_interval]))", "in the background"),
        ),
    ),
    Panel(
        "facts",
        "Time of a change of facts",
        "From a change of facts to updated capability sets.",
        Kind.TIMESERIES,
        "s",
        _quantiles("shai_fact_change_seconds"),
    ),
    Panel(
        "revocation",
        "Time of a revocation",
        "From the request that takes a permission away to the moment when the last session that it ends can do "
        "nothing any more. Beyond the line it takes longer than promised, which is an alert: ShaiRevocationSlow.",
        Kind.TIMESERIES,
        "s",
        _quantiles("shai_revocation_seconds"),
        limits=(Limit(0, "good"), Limit(10, "bad")),
    ),
    Panel(
        "documents",
        "Documents that come, change and go",
        "Per second. Refused files are no documents; a file counts each time that a monitor looks at it.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (result) (rate(shai_ingested_documents_total{{{MEMBER}}}[$__rate_interval]))", "{{result}}"),),
        stacked=True,
    ),
    Panel(
        "ingest",
        "Time until documents are catalogued",
        "Of a step of at most 1,000 files, with the wait for other changes. Sessions do not wait for it.",
        Kind.TIMESERIES,
        "s",
        _quantiles("shai_ingest_seconds"),
    ),
    Panel(
        "blocked",
        "Accesses that a task needs and does not get",
        "By the last complete AnalysisRun: no instance is granted them, so the task cannot do its work.",
        Kind.TABLE,
        "short",
        (
            Query(
                f"sum by (namespace, pipeline, task) (shai_analysis_blocked_accesses{{{OBJECT}}})",
                "blocked",
            ),
        ),
        columns=(Column("namespace", "namespace"), Column("pipeline", "pipeline", "pipeline"), Column("task", "task")),
        decimals=0,
    ),
    Panel(
        "runs",
        "Analysis runs",
        "AnalysisRuns of the namespaces, what started them, and how long they took.",
        Kind.TABLE,
        "s",
        (
            Query(
                f"max by (namespace, pipeline, run, trigger, reason) (shai_analysis_run_duration_seconds{{{OBJECT}}}"
                " * on (cluster, instance, namespace, pipeline, run) group_left (trigger, reason) "
                f"shai_analysis_run_info{{{OBJECT}}})",
                "duration",
            ),
        ),
        columns=(
            Column("namespace", "namespace"),
            Column("pipeline", "pipeline", "pipeline"),
            Column("run", "run"),
            Column("trigger", "started by"),
            Column("reason", "state"),
        ),
    ),
)
