# SPDX-License-Identifier: BSD-2-Clause
"""Panels that more than one board has."""

from __future__ import annotations

from dashboards.model import Kind, Limit, Panel, Query
from dashboards.queries.selectors import PIPELINE, PIPELINES, or_zero


def _events(metric: str) -> str:
    """Return how many events of pipelines there were in the range: the function increase() extrapolates."""
    return or_zero(f"round(sum(increase({metric}{{{PIPELINE}}}[$__range])))", PIPELINES)


REFUSED = Panel(
    "refused",
    "Accesses refused",
    "Accesses that were refused in the chosen range.",
    Kind.STAT,
    "short",
    (Query(_events("shai_denials_total"), "refused"),),
    limits=(Limit(0, "neutral"),),
    decimals=0,
)

WOULD_REFUSE = Panel(
    "would-refuse",
    "Accesses that would be refused",
    "Accesses in the chosen range that were allowed only because the policies that forbid them are in mode Audit or "
    "Warn, once for each of these policies, or because the pipeline is in mode audit.",
    Kind.STAT,
    "short",
    (Query(_events("shai_would_deny_total"), "would be refused"),),
    limits=(Limit(0, "good"), Limit(1, "warning")),
    decimals=0,
)

ACTIVE = Panel(
    "active",
    "Sessions now",
    "Sessions that are open now.",
    Kind.STAT,
    "short",
    (Query(f"sum(shai_sessions_active{{{PIPELINE}}})", "sessions"),),
    limits=(Limit(0, "neutral"),),
    decimals=0,
)

OPENS = Panel(
    "opens",
    "Opens per second, by who answered",
    "native: the kernel alone, by the capability set (as the workers say it; no evidence). supervisor: from what was "
    "decided ahead. monitor: decided when it was asked for.",
    Kind.TIMESERIES,
    "ops",
    (
        Query(f"sum(rate(shai_native_opens_total{{{PIPELINE}}}[$__rate_interval]))", "native"),
        Query(f"sum by (path) (rate(shai_opens_total{{{PIPELINE}}}[$__rate_interval]))", "{{path}}"),
    ),
    colours="parts",
    stacked=True,
)

SESSIONS = Panel(
    "sessions",
    "Sessions per second, by what was foreseen",
    "analyzed: the session got a capability set that was ready. mispredicted: something differed from what was "
    "expected, so the monitor decides. refused: no session began.",
    Kind.TIMESERIES,
    "ops",
    (Query(f"sum by (result) (rate(shai_session_bindings_total{{{PIPELINE}}}[$__rate_interval]))", "{{result}}"),),
    colours="results",
    stacked=True,
    more="analysis",
)
