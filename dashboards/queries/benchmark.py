# SPDX-License-Identifier: BSD-2-Clause
"""Benchmark: runs compared, and the run that is under way."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries.selectors import LOAD, MEASURED, NAMESPACE, OBJECT, by_mode

_RUN = (Column("benchmark", "benchmark"), Column("session_length", "queries per session"), Column("mode", "mode"))


def _each(metric: str, also: str = "") -> str:
    return f"max by (benchmark, session_length, mode) (shai_benchmark_{metric}{{{MEASURED}{also}}})"


def _by_run(metric: str) -> str:
    return f'max by (benchmark, mode) (shai_benchmark_{metric}{{{MEASURED},bound="value"}})'


def _quantile(of: str, quantile: float) -> Query:
    buckets = f"sum by (le) (rate(shai_load_{of}_seconds_bucket{{{LOAD}}}[$__rate_interval]))"
    return Query(f"histogram_quantile({quantile}, {buckets})", f"{of} p{quantile * 100:g}")


def _counted(series: str) -> str:
    """Return what load generators counted in the range, exactly. Each begins at 0, before Prometheus knows of it.

    The function increase() has nothing of what came before the first scrape, and extrapolates.
    """
    last = f"max_over_time({series}[$__range])"
    return f"sum({last} - ({series} offset $__range) or {last})"


def _load(metric: str, also: str = "") -> str:
    return f"sum by (mode) (rate(shai_load_{metric}{{{LOAD}{also}}}[$__rate_interval]))"


PANELS = (
    Panel(
        "done",
        "Slices done",
        "Of the slices of all Benchmarks: the part that is measured.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                f'sum(shai_benchmark_slices{{{NAMESPACE},state="done"}}) / '
                f'sum(shai_benchmark_slices{{{NAMESPACE},state="planned"}})',
                "done",
            ),
        ),
        limits=(Limit(0, "neutral"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "exceeded",
        "Thresholds exceeded",
        "Thresholds of Benchmarks that their results exceed.",
        Kind.STAT,
        "short",
        (Query(f"sum(shai_benchmark_threshold_exceeded{{{NAMESPACE}}})", "exceeded"),),
        limits=(Limit(0, "good"), Limit(1, "bad")),
        decimals=0,
    ),
    Panel(
        "users",
        "Users that search",
        "Users of the load generators that search at the same time now.",
        Kind.STAT,
        "short",
        (Query(f"sum(shai_load_users{{{OBJECT}}})", "users"),),
        limits=(Limit(0, "neutral"),),
        decimals=0,
    ),
    Panel(
        "failed",
        "Queries that failed",
        "Queries in the chosen range that got no answer, or a wrong one.",
        Kind.STAT,
        "short",
        (Query(_counted(f'shai_load_queries_total{{{LOAD},result="failed"}}'), "failed"),),
        limits=(Limit(0, "good"), Limit(1, "bad")),
        decimals=0,
    ),
    Panel(
        "violations",
        "Documents that must not be shown",
        "Documents in the chosen range that a user was shown although a policy forbids it. In mode baseline nothing "
        "keeps a fault of the search engine from it; in the others this stays 0.",
        Kind.STAT,
        "short",
        (Query(_counted(f"shai_load_violations_total{{{LOAD}}}"), "shown"),),
        limits=(Limit(0, "good"), Limit(1, "bad")),
        decimals=0,
    ),
    Panel(
        "accesses",
        "Documents that the support asked for",
        "Documents of users in the chosen range that employees of the support asked for: read, each after its entry in "
        "the log of accesses, or refused.",
        Kind.STAT,
        "short",
        (
            Query(_counted(f'shai_load_accesses_total{{{LOAD},result="ok"}}'), "read"),
            Query(_counted(f'shai_load_accesses_total{{{LOAD},result="refused"}}'), "refused"),
        ),
        limits=(Limit(0, "neutral"),),
        decimals=0,
    ),
    Panel(
        "advertisements",
        "Advertisements about a topic of the user",
        "Advertisements in the chosen range that were chosen by the topics of their user, of all that users with "
        "topics were shown.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                _counted(f'shai_load_advertisements_total{{{LOAD},found="chosen"}}')
                + " / "
                + _counted(f"shai_load_advertisements_total{{{LOAD}}}"),
                "chosen",
            ),
        ),
        limits=(Limit(0, "bad"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "completed",
        "Benchmarks",
        "When each Benchmark completed.",
        Kind.TABLE,
        "dateTimeAsIso",
        (
            Query(
                "sort_desc(1000 * max by (namespace, benchmark) "
                f"(shai_benchmark_completion_timestamp_seconds{{{NAMESPACE}}}))",
                "completed",
            ),
        ),
        columns=(Column("namespace", "namespace"), Column("benchmark", "benchmark")),
    ),
    Panel(
        "added-session",
        "CPU added per session, by Benchmark",
        "CPU time that a mode adds to a session itself, without its queries. Two Benchmarks can be compared if "
        "machine, load and size were the same.",
        Kind.BAR,
        "s",
        (Query(_by_run("cpu_added_seconds_per_session")),),
        across="benchmark",
        by="mode",
        colours="modes",
    ),
    Panel(
        "overhead-session-1",
        "Throughput overhead in the shortest sessions, by Benchmark",
        "Lost throughput compared with mode baseline, in sessions of one query: the highest overhead that there is.",
        Kind.BAR,
        "percentunit",
        (
            Query(
                f"max by (benchmark, mode) (shai_benchmark_throughput_overhead_ratio{{{MEASURED},"
                'bound="value",session_length="1"})'
            ),
        ),
        across="benchmark",
        by="mode",
        colours="modes",
    ),
    Panel(
        "overheads",
        "Overhead of each run",
        "Compared with mode baseline of the same Benchmark, with the intervals that hold the figures with 95 % "
        "confidence. Queries per session 0: one session for the whole run.",
        Kind.TABLE,
        "percentunit",
        (
            Query(_each("throughput_overhead_ratio", ',bound="value"'), "throughput overhead"),
            Query(_each("throughput_overhead_ratio", ',bound="low"'), "throughput, low"),
            Query(_each("throughput_overhead_ratio", ',bound="high"'), "throughput, high"),
            Query(_each("paper_throughput_overhead_ratio"), "paper"),
            Query(_each("cpu_overhead_ratio", ',bound="value"'), "CPU overhead"),
            Query(_each("cpu_overhead_ratio", ',bound="low"'), "CPU, low"),
            Query(_each("cpu_overhead_ratio", ',bound="high"'), "CPU, high"),
        ),
        columns=_RUN,
        decimals=2,
    ),
    Panel(
        "figures",
        "Figures of each run",
        "Queries per second, CPU time and latency, by mode and queries per session (0: one session for the whole run).",
        Kind.TABLE,
        "s",
        (
            Query(_each("queries_per_second"), "queries/s", "reqps"),
            Query(_each("cpu_seconds_per_query"), "CPU per query"),
            Query(_each("cpu_seconds_per_session"), "CPU per session"),
            Query(_each("latency_seconds", ',quantile="0.5"'), "p50"),
            Query(_each("latency_seconds", ',quantile="0.99"'), "p99"),
        ),
        columns=_RUN,
    ),
    Panel(
        "throughput",
        "Queries per second now, by result",
        "What the load generators are sending.",
        Kind.TIMESERIES,
        "reqps",
        (
            Query(
                f"sum by (scenario, result) (rate(shai_load_queries_total{{{LOAD}}}[$__rate_interval]))",
                "{{scenario}} {{result}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "latency",
        "Latency now",
        "Time from the request to the whole answer: median and 99th percentile of queries, median of logins.",
        Kind.TIMESERIES,
        "s",
        (_quantile("query", 0.5), _quantile("query", 0.99), _quantile("login", 0.5)),
    ),
    Panel(
        "shown",
        "Documents shown per query",
        "Documents that a query showed, by mode. A mode that shows fewer refuses what the others showed.",
        Kind.TIMESERIES,
        "short",
        (Query(by_mode(f"{_load('results_total')} / {_load('queries_total')}"), "{{mode}}"),),
        colours="modes",
    ),
    Panel(
        "interceptions",
        "Interceptions per session, by Benchmark",
        "How often the monitor or a supervisor in its place is asked in a session, apart from its queries.",
        Kind.BAR,
        "short",
        (Query(f"max by (benchmark, mode) (shai_benchmark_interceptions_per_session{{{MEASURED}}})"),),
        across="benchmark",
        by="mode",
        colours="modes",
    ),
)
