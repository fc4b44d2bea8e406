# SPDX-License-Identifier: BSD-2-Clause
"""Overhead: what enforcement costs, and what it stops. `shai report` draws the same panels."""

from __future__ import annotations

from dataclasses import replace

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries import shared
from dashboards.queries.selectors import LOAD, MEASURED, MEMBER, NEWEST, PIPELINE, by_mode

_WHOLE = ',session_length="0"'
"""One session for the whole run."""
_ADDED = "shai_benchmark_cpu_added_seconds_per_"


def _added(per: str, also: str = "") -> str:
    """Return CPU time that modes add, as the newest Benchmark of each pipeline measured it."""
    return f'{_ADDED}{per}{{{MEASURED},mode!="control",bound="value"{also}}}{NEWEST}'


def _measured(metric: str, also: str = "") -> str:
    """Return a figure of the newest Benchmark, by session length and mode."""
    return f"max by (session_length, mode) (shai_benchmark_{metric}{{{MEASURED}{also}}}{NEWEST})"


def _quantile(quantile: float) -> Query:
    expr = f"sum by (le, mode) (rate(shai_load_query_seconds_bucket{{{LOAD}}}[$__rate_interval]))"
    return Query(by_mode(f"histogram_quantile({quantile}, {expr})"), f"{{{{mode}}}} p{quantile * 100:g}")


_TASKS, _SUPERVISORS = (f'shai_cpu_seconds_total{{{PIPELINE},part="{part}"}}' for part in ("task", "supervisor"))
_MONITORS = f'process_cpu_seconds_total{{job="shai-monitor",{MEMBER}}}'


def _taken(series: str) -> str:
    """Return the CPU time of the range."""
    return f"sum(increase({series}[$__range]))"


def _per_session(series: str, legend: str) -> Query:
    """Return CPU time by the sessions that ended. No session, no quotient."""
    sessions = f"sum(rate(shai_sessions_total{{{PIPELINE}}}[$__rate_interval])) > 0"
    return Query(f"sum(rate({series}[$__rate_interval])) / ({sessions})", legend)


PANELS = (
    Panel(
        "added-session",
        "CPU added per session",
        "CPU time that a session costs more than without enforcement, by mode, as the newest Benchmark of each "
        "pipeline measured it.",
        Kind.STAT,
        "s",
        (Query(f"max by (mode) ({_added('session')})", "{{mode}}"),),
        colours="modes",
    ),
    Panel(
        "added-query",
        "CPU added per query",
        "CPU time that a query costs more than without enforcement, in one session for the whole run, or else in the "
        "session length where it is least. By mode, as the newest Benchmark of each pipeline measured it.",
        Kind.STAT,
        "s",
        (
            Query(
                f"max by (mode) ({_added('query', _WHOLE)}) or min by (mode) ({_added('query')})",
                "{{mode}}",
            ),
        ),
        colours="modes",
    ),
    Panel(
        "share",
        "Enforcement's share of CPU",
        "Of the CPU time that the pipelines and their enforcement took in the chosen range: the part of supervisors "
        "and monitors. It needs no Benchmark. It does not have what the kernel adds to each system call of a task. A "
        "monitor's time is that of all its pipelines.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                f"({_taken(_SUPERVISORS)} + {_taken(_MONITORS)}) / "
                f"({_taken(_TASKS)} + {_taken(_SUPERVISORS)} + {_taken(_MONITORS)})",
                "share",
            ),
        ),
        limits=(Limit(0, "good"), Limit(0.2, "warning"), Limit(0.5, "bad")),
        decimals=1,
    ),
    shared.REFUSED,
    shared.WOULD_REFUSE,
    shared.ACTIVE,
    Panel(
        "overhead",
        "Throughput overhead by session length, and the paper's",
        "Lost throughput compared with mode baseline, by queries per session (0 or “whole run”: one session for the "
        "whole run). “paper” is Table I of the paper. Its queries cost about 100 times as much CPU, so that the "
        "same added cost is a larger share here.",
        Kind.BAR,
        "percentunit",
        (
            Query(
                _measured("throughput_overhead_ratio", ',bound="value"')
                + " or label_replace(max by (session_length, mode) (shai_benchmark_paper_throughput_overhead_ratio{"
                + MEASURED
                + "}"
                + NEWEST
                + '), "mode", "paper: $1", "mode", "(.*)")'
            ),
        ),
        across="session_length",
        numbered=True,
        by="mode",
        colours="modes",
        more="benchmark",
    ),
    Panel(
        "added",
        "CPU that enforcement adds, with its interval",
        "CPU time that a mode adds to a query, with its part of the session, and to a session itself, without its "
        "queries; and the intervals that hold them with 95 % confidence. "
        "An interval that includes zero is below the noise. “control” is a second installation without enforcement: "
        "what it differs by cannot be told from a cost.",
        Kind.TABLE,
        "s",
        (
            Query(_measured("cpu_added_seconds_per_query", ',bound="value"'), "per query"),
            Query(_measured("cpu_added_seconds_per_query", ',bound="low"'), "per query, low"),
            Query(_measured("cpu_added_seconds_per_query", ',bound="high"'), "per query, high"),
            Query(_measured("cpu_added_seconds_per_session", ',bound="value"'), "per session"),
            Query(_measured("cpu_added_seconds_per_session", ',bound="low"'), "per session, low"),
            Query(_measured("cpu_added_seconds_per_session", ',bound="high"'), "per session, high"),
        ),
        columns=(Column("session_length", "queries per session"), Column("mode", "mode")),
        more="benchmark",
    ),
    Panel(
        "throughput",
        "Queries per second, by mode",
        "Queries that the load generators had answered, by the mode of the measurement; “by-hand” is load of no "
        "measurement, in whatever mode the pipeline is. Empty without a load generator.",
        Kind.TIMESERIES,
        "reqps",
        (
            Query(
                by_mode(f'sum by (mode) (rate(shai_load_queries_total{{{LOAD},result="ok"}}[$__rate_interval]))'),
                "{{mode}}",
            ),
        ),
        colours="modes",
        more="benchmark",
    ),
    Panel(
        "latency",
        "Latency of a query, by mode",
        "Time from the request to the whole answer as the load generators saw it: median and 99th percentile.",
        Kind.TIMESERIES,
        "s",
        (_quantile(0.5), _quantile(0.99)),
        colours="modes",
    ),
    Panel(
        "cpu-session",
        "CPU per session, by part",
        "CPU time of tasks, their supervisors and the monitors, divided by the sessions that ended, in whatever mode; "
        "a gap where none did. What supervisors and monitors take is the cost of enforcement; the kernel's own part "
        "is in the tasks' time. A monitor's time is that of all its pipelines.",
        Kind.TIMESERIES,
        "s",
        (
            _per_session(_TASKS, "task"),
            _per_session(_SUPERVISORS, "supervisor"),
            _per_session(_MONITORS, "monitor"),
        ),
        colours="parts",
        stacked=True,
        more="pool",
    ),
    replace(shared.OPENS, more="pipeline"),
    Panel(
        "stopped",
        "Refused per second, by reason",
        "Accesses that were refused, by why. The board Policies and denials says who and what.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (reason) (rate(shai_denials_total{{{PIPELINE}}}[$__rate_interval]))", "{{reason}}"),),
        stacked=True,
        more="policies",
    ),
    shared.SESSIONS,
    Panel(
        "measured",
        "Each mode beside baseline",
        "Figures of the newest Benchmark of each pipeline, by queries per session (0: one session for the whole run).",
        Kind.TABLE,
        "short",
        (
            Query(_measured("queries_per_second"), "queries/s", "reqps"),
            Query(_measured("cpu_seconds_per_query"), "CPU per query", "s"),
            Query(_measured("cpu_overhead_ratio", ',bound="value"'), "CPU overhead", "percentunit"),
            Query(_measured("throughput_overhead_ratio", ',bound="value"'), "throughput overhead", "percentunit"),
            Query(_measured("paper_throughput_overhead_ratio"), "paper", "percentunit"),
            Query(_measured("latency_seconds", ',quantile="0.5"'), "p50", "s"),
            Query(_measured("latency_seconds", ',quantile="0.99"'), "p99", "s"),
            Query(_measured("interceptions_per_session"), "interceptions per session", "short"),
        ),
        columns=(Column("session_length", "queries per session"), Column("mode", "mode")),
        more="benchmark",
    ),
    Panel(
        "policies",
        "What was stopped, by policy",
        "Refused accesses in the chosen range. Policy: the policy that decided, empty if none did.",
        Kind.TABLE,
        "short",
        (
            Query(
                "sort_desc(round(sum by (pipeline, policy, reason) "
                f"(increase(shai_denials_total{{{PIPELINE}}}[$__range]))) > 0)",
                "refused",
            ),
        ),
        columns=(Column("pipeline", "pipeline", "policies"), Column("policy", "policy"), Column("reason", "reason")),
        decimals=0,
        more="policies",
    ),
)
