# SPDX-License-Identifier: BSD-2-Clause
"""Label matchers that the queries share.

Every variable matches anything by default, and so also a series without the label: a monitor outside of
Kubernetes has no namespace and no member.
"""

from __future__ import annotations

NAMESPACE = 'cluster=~"$cluster",namespace=~"$namespace"'
"""Objects of Kubernetes: what the operator exports."""

MEMBER = f'{NAMESPACE},member=~"$member"'
"""Monitors."""

PIPELINE = f'{MEMBER},pipeline=~"$pipeline"'
"""Pipelines on monitors."""

PIPELINES = f"shai_pipeline_mode{{{PIPELINE}}}"
"""What is there while a monitor runs pipelines, whether anything happens in them or not."""

LOAD = f'{NAMESPACE},pipeline=~"$pipeline",mode=~"$mode"'
"""Load on pipelines, which comes from no member; by hand without Kubernetes it has no namespace."""

OBJECT = f'{NAMESPACE},pipeline=~"$pipeline"'
"""What the operator knows of pipelines: their conditions, analyses and Benchmarks."""

MEASURED = f'{OBJECT},mode=~"$mode"'
"""What Benchmarks measured in the modes that were chosen."""

NEWEST = (
    " and on (cluster, namespace, benchmark) topk by (cluster, namespace, pipeline)"
    f" (1, shai_benchmark_completion_timestamp_seconds{{{OBJECT}}})"
)
"""Follows a query about Benchmarks: the newest of each pipeline only."""

SUPPLY = {
    "cluster": "shai_build_info",
    "namespace": 'shai_build_info{cluster=~"$cluster"}',
    "pipeline": f"shai_pipeline_mode{{{NAMESPACE}}}",
    "mode": f'{{__name__=~"shai_pipeline_mode|shai_benchmark_queries_per_second",{NAMESPACE}}}',
    "member": f"shai_build_info{{{NAMESPACE}}}",
}
"""Where the values that a board offers come from, by variable."""


def by_mode(expr: str) -> str:
    """Name load that comes by hand, in whatever mode the pipeline is: its mode is empty."""
    return f'label_replace({expr}, "mode", "by-hand", "mode", "")'


def or_zero(expr: str, known: str) -> str:
    """Return zero where nothing was counted, if what counts is there: no refusal is not the same as no monitor."""
    return f"({expr} or 0 * sum({known}))"
