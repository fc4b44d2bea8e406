# SPDX-License-Identifier: BSD-2-Clause
"""Rollout: the canary beside the stable members."""

from __future__ import annotations

from dashboards.model import Column, Event, Kind, Limit, Panel, Query
from dashboards.queries.selectors import MEMBER, NAMESPACE

PANELS = (
    Panel(
        "step",
        "Step",
        "Step of the rollout that is under way; 0: none.",
        Kind.STAT,
        "short",
        (Query(f"max(shai_rollout_step{{{NAMESPACE}}})", "step"),),
        limits=(Limit(0, "neutral"),),
        decimals=0,
    ),
    Panel(
        "steps",
        "Steps in all",
        "Steps of the rollout that is under way; 0: none.",
        Kind.STAT,
        "short",
        (Query(f"max(shai_rollout_steps{{{NAMESPACE}}})", "steps"),),
        limits=(Limit(0, "neutral"),),
        decimals=0,
    ),
    Panel(
        "completed",
        "Completed",
        "Rollouts in the chosen range that reached all members.",
        Kind.STAT,
        "short",
        (Query(f'sum(increase(shai_rollouts_total{{{NAMESPACE},result="completed"}}[$__range]))', "completed"),),
        limits=(Limit(0, "neutral"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "rolled-back",
        "Rolled back",
        "Rollouts in the chosen range that were taken back, because the canary was judged worse or somebody asked for "
        "it.",
        Kind.STAT,
        "short",
        (Query(f'sum(increase(shai_rollouts_total{{{NAMESPACE},result="rolled_back"}}[$__range]))', "rolled back"),),
        limits=(Limit(0, "good"), Limit(1, "warning")),
        decimals=0,
    ),
    Panel(
        "state",
        "Rollouts",
        "What is in force, what is being rolled out, and how it stands, as the pool's condition RolledOut says it.",
        Kind.TABLE,
        "short",
        (Query(f"max by (namespace, pool, stable, candidate, reason) (shai_rollout_info{{{NAMESPACE}}})"),),
        columns=(
            Column("namespace", "namespace"),
            Column("pool", "pool"),
            Column("stable", "stable"),
            Column("candidate", "candidate"),
            Column("reason", "state"),
        ),
    ),
    Panel(
        "denials",
        "Denials: canary beside stable",
        "Denials among the decisions of the members that a step compares. A canary that denies more is rolled back.",
        Kind.TIMESERIES,
        "percentunit",
        (Query(f"max by (track, pool) (shai_rollout_track_denial_ratio{{{NAMESPACE}}})", "{{track}}, {{pool}}"),),
        colours="tracks",
    ),
    Panel(
        "decision-time",
        "Decision time per session: canary beside stable",
        "Time that the monitors of the compared members spend on decisions, for each session.",
        Kind.TIMESERIES,
        "s",
        (
            Query(
                f"max by (track, pool) (shai_rollout_track_decision_seconds_per_session{{{NAMESPACE}}})",
                "{{track}}, {{pool}}",
            ),
        ),
        colours="tracks",
    ),
    Panel(
        "sessions",
        "Sessions: canary beside stable",
        "Sessions of the compared members since the step has been watched. Too few of them decide nothing.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (track, pool) (shai_rollout_track_sessions{{{NAMESPACE}}})", "{{track}}, {{pool}}"),),
        colours="tracks",
    ),
    Panel(
        "members",
        "Members by release",
        "How many members have each release in force. A rollout moves them from one line to the other.",
        Kind.TIMESERIES,
        "short",
        (Query(f"count by (release) (shai_member_info{{{MEMBER}}})", "{{release}}"),),
        stacked=True,
        more="pool",
    ),
    Panel(
        "progress",
        "Step of the rollout",
        "How far each pool is.",
        Kind.TIMESERIES,
        "short",
        (
            Query(f"max by (pool) (shai_rollout_step{{{NAMESPACE}}})", "{{pool}}"),
            Query(f"max by (pool) (shai_rollout_steps{{{NAMESPACE}}})", "{{pool}}, of"),
        ),
    ),
    Panel(
        "refused",
        "Refused per second, by member",
        "What each member refuses: a canary with a wrong policy stands out.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (member) (rate(shai_denials_total{{{MEMBER}}}[$__rate_interval]))", "{{member}}"),),
        more="policies",
    ),
    Panel(
        "bundles",
        "Bundles in force",
        "The bundle of policies, facts and manifests that each member's monitor enforces, and for how long.",
        Kind.TABLE,
        "s",
        (
            Query(
                "time() - max by (namespace, member, version, label, hash) "
                f"(shai_bundle_applied_timestamp_seconds{{{MEMBER}}} * on (cluster, instance) "
                f"group_left (version, label, hash) shai_bundle_info{{{MEMBER}}})",
                "in force for",
            ),
        ),
        columns=(
            Column("namespace", "namespace"),
            Column("member", "member", "pool"),
            Column("version", "bundle"),
            Column("label", "label"),
            Column("hash", "hash"),
        ),
    ),
)

EVENTS = (
    Event(
        "Release",
        f"max by (member, version) (shai_bundle_applied_timestamp_seconds{{{MEMBER}}} "
        f"* on (cluster, instance) group_left (version) shai_bundle_info{{{MEMBER}}}) * 1000",
        "bundle {{version}} in force on {{member}}",
        "neutral",
        at_value=True,
    ),
    Event(
        "Facts changed",
        f"sum by (namespace) (increase(shai_fact_changes_total{{{MEMBER}}}[$__rate_interval])) > 0",
        "facts changed in {{namespace}}",
        "warning",
    ),
)
