# SPDX-License-Identifier: BSD-2-Clause
"""What `shai report` shows beside the panels of the board Overhead."""

from __future__ import annotations

from dashboards.model import Column, Kind, Panel, Query
from dashboards.queries.selectors import LOAD, PIPELINE

PANELS = (
    Panel(
        "latency-distribution",
        "Distribution of latencies",
        "Queries in the range, by mode and the upper bound of their latency.",
        Kind.TABLE,
        "short",
        (Query(f"sum by (mode, le) (increase(shai_load_query_seconds_bucket{{{LOAD}}}[$__range]))", "queries"),),
        columns=(Column("mode", "mode"), Column("le", "up to")),
    ),
    Panel(
        "analysis-size",
        "Time and size of the last analysis",
        "The last analysis of each pipeline: its time, the accesses that it decided, and the instances of tasks.",
        Kind.TABLE,
        "short",
        (
            Query(f"max by (pipeline) (shai_analysis_duration_seconds{{{PIPELINE}}})", "time", "s"),
            Query(f"max by (pipeline) (sum without (outcome) (shai_analysis_accesses{{{PIPELINE}}}))", "accesses"),
            Query(f"max by (pipeline) (shai_analysis_instances{{{PIPELINE}}})", "instances"),
        ),
        columns=(Column("pipeline", "pipeline"),),
    ),
)
