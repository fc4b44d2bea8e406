# SPDX-License-Identifier: BSD-2-Clause
"""Policies and denials: what was refused, to which task, by which policy and why."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries import shared
from dashboards.queries.selectors import NAMESPACE, PIPELINE, PIPELINES, or_zero

_DENIED = f"shai_denials_total{{{PIPELINE}}}"
_WOULD = f"shai_would_deny_total{{{PIPELINE}}}"

PANELS = (
    shared.REFUSED,
    Panel(
        "share",
        "Share of decisions",
        "Of the decisions in the chosen range: the part that refused. Accesses that the kernel allows by itself need "
        "no decision.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                or_zero(f'sum(increase(shai_decisions_total{{{PIPELINE},allowed="false"}}[$__range]))', PIPELINES)
                + f" / sum(increase(shai_decisions_total{{{PIPELINE}}}[$__range]))",
                "refused",
            ),
        ),
        limits=(Limit(0, "good"), Limit(0.01, "warning"), Limit(0.1, "bad")),
        decimals=2,
    ),
    shared.WOULD_REFUSE,
    Panel(
        "omitted",
        "Denials counted only in summaries",
        "Denials in the chosen range that the audit log counts in summaries and does not record one by one, because "
        "one task had too many.",
        Kind.STAT,
        "short",
        (
            Query(
                f'sum(increase(shai_audit_omitted_total{{{NAMESPACE},member=~"$member"}}[$__range]))',
                "omitted",
            ),
        ),
        limits=(Limit(0, "good"), Limit(1, "warning")),
        decimals=0,
    ),
    Panel(
        "by-reason",
        "Refused per second, by reason",
        "policy: the conduit's policy does not allow it. taint: what was read must not flow there. The reference of "
        "the metrics lists all reasons.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (reason) (rate({_DENIED}[$__rate_interval]))", "{{reason}}"),),
        stacked=True,
    ),
    Panel(
        "by-policy",
        "Refused per second, by policy",
        "Only accesses on which a policy decided.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(
                f'sum by (policy) (rate(shai_denials_total{{{PIPELINE},policy!=""}}[$__rate_interval]))', "{{policy}}"
            ),
        ),
        stacked=True,
    ),
    Panel(
        "would-by-policy",
        "Would be refused per second, by policy",
        "What a policy in mode Audit or Warn would refuse, or any in a pipeline in mode audit: look at it before you "
        "enforce the policy.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(
                f"sum by (policy, mode, reason) (rate({_WOULD}[$__rate_interval]))", "{{policy}}, {{reason}} ({{mode}})"
            ),
        ),
        stacked=True,
    ),
    Panel(
        "who",
        "Who was refused, and why",
        "Refused accesses in the chosen range, by task, policy and reason.",
        Kind.TABLE,
        "short",
        (Query(f"sort_desc(sum by (pipeline, task, policy, reason) (increase({_DENIED}[$__range])) > 0)", "refused"),),
        columns=(
            Column("pipeline", "pipeline", "pipeline"),
            Column("task", "task"),
            Column("policy", "policy"),
            Column("reason", "reason"),
        ),
        decimals=0,
    ),
    Panel(
        "what",
        "What was refused",
        "Decisions in the chosen range that refused, by conduit and operation.",
        Kind.TABLE,
        "short",
        (
            Query(
                "sort_desc(sum by (pipeline, conduit, operation) "
                f'(increase(shai_conduit_decisions_total{{{PIPELINE},allowed="false"}}[$__range])) > 0)',
                "refused",
            ),
        ),
        columns=(
            Column("pipeline", "pipeline", "pipeline"),
            Column("conduit", "conduit"),
            Column("operation", "operation"),
        ),
        decimals=0,
    ),
    Panel(
        "explain",
        "Which user, which document?",
        "Metrics name no users and no documents: labels must stay few, and Grafana's readers need not know them. "
        "The audit log has them, and who administers the monitor can ask:\n\n"
        "```\n"
        "shai explain --help      # why a user may or may not read a document:\n"
        "                         # the clause, the facts, what is missing\n"
        "shai explain --browser   # the same as a page, with live denials\n"
        "shai audit --help        # every decision that was recorded\n"
        "```\n",
        Kind.TEXT,
        "short",
    ),
    Panel(
        "by-operation",
        "Refused per second, by operation",
        "Accesses, logins and system calls that were refused or, in mode audit, would have been.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (operation) (rate(shai_refusals_total{{{PIPELINE}}}[$__rate_interval]))", "{{operation}}"),),
        stacked=True,
    ),
    Panel(
        "revisions",
        "Revisions of policies",
        "Each policy's revision in force, and the one that is being rolled out.",
        Kind.TABLE,
        "short",
        (Query(f"max by (namespace, policy, mode, stable, candidate) (shai_policy_revision_info{{{NAMESPACE}}})"),),
        columns=(
            Column("namespace", "namespace", "rollout"),
            Column("policy", "policy"),
            Column("mode", "mode"),
            Column("stable", "stable"),
            Column("candidate", "candidate"),
        ),
    ),
)
