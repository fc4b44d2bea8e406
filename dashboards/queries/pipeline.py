# SPDX-License-Identifier: BSD-2-Clause
"""Pipeline: what flows where, and who lets it."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries import shared
from dashboards.queries.selectors import PIPELINE

_OF_TASK = (Column("pipeline", "pipeline"), Column("task", "task"))


def _decisions(by: str, selected: str) -> str:
    """Return how many decisions there were in the range."""
    return f"round(sum by ({by}) (increase(shai_conduit_decisions_total{{{PIPELINE},{selected}}}[$__range])))"


def _node(expr: str, label: str) -> str:
    """Make a result a node: its id cannot be that of a node of another kind."""
    return (
        f'label_replace(label_replace(label_replace({expr}, "id", "{label}:$1", "{label}", "(.*)"), '
        f'"title", "$1", "{label}", "(.*)"), "subtitle", "{label}", "", "")'
    )


_EDGES = f"max by (task, conduit, direction) (shai_flow{{{PIPELINE}}})"


def _edge(direction: str, source: str, target: str) -> str:
    """Make the flows of a direction edges from one end to the other."""
    selected = f'max by (task, conduit) (shai_flow{{{PIPELINE},direction="{direction}"}})'
    return (
        f'label_join(label_replace(label_replace({selected}, "source", "{source}:$1", "{source}", "(.*)"), '
        f'"target", "{target}:$1", "{target}", "(.*)"), "id", " ", "source", "target")'
    )


PANELS = (
    Panel(
        "mode",
        "Mode in force",
        "How the pipeline's tasks are run: baseline enforces nothing, dynamic decides on every access, shai enforces "
        "with capability sets, audit only records.",
        Kind.NAMES,
        "short",
        (Query(f"max by (mode) (shai_pipeline_mode{{{PIPELINE}}})", "{{mode}}"),),
        colours="modes",
    ),
    shared.ACTIVE,
    Panel(
        "native-share",
        "Opens that the kernel allowed alone",
        "Of all opens that were allowed: the part that no program of Shai saw. The workers say how many there were.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                f"sum(increase(shai_native_opens_total{{{PIPELINE}}}[$__range])) / "
                f"(sum(increase(shai_native_opens_total{{{PIPELINE}}}[$__range])) + "
                f'sum(increase(shai_opens_total{{{PIPELINE},allowed="true"}}[$__range])))',
                "native",
            ),
        ),
        limits=(Limit(0, "neutral"),),
        decimals=1,
        more="analysis",
    ),
    Panel(
        "restarts",
        "Task restarts",
        "Tasks that ended unexpectedly in the chosen range and were to be started again.",
        Kind.STAT,
        "short",
        (Query(f"sum(increase(shai_task_restarts_total{{{PIPELINE}}}[$__range]))", "restarts"),),
        limits=(Limit(0, "good"), Limit(1, "warning"), Limit(5, "bad")),
        decimals=0,
    ),
    Panel(
        "discarded",
        "Workers discarded",
        "Workers that were killed in the chosen range because they were not rolled back as they should.",
        Kind.STAT,
        "short",
        (Query(f"sum(increase(shai_workers_discarded_total{{{PIPELINE}}}[$__range]))", "discarded"),),
        limits=(Limit(0, "good"), Limit(1, "bad")),
        decimals=0,
    ),
    Panel(
        "flow",
        "Flow graph",
        "Tasks and the conduits that their manifest lets them read and write. The number of a node: refused accesses "
        "in the chosen range, of the task or to the conduit. Accesses that the kernel allows by itself are not "
        "counted by conduit, so edges have no rates. Choose one pipeline.",
        Kind.FLOW,
        "short",
        (
            Query(
                _node(
                    _decisions("conduit", 'conduit!="",allowed="false"')
                    + f" or max by (conduit) (shai_flow{{{PIPELINE}}}) * 0",
                    "conduit",
                )
                + " or "
                + _node(
                    f"round(sum by (task) (increase(shai_denials_total{{{PIPELINE}}}[$__range])))"
                    f" or max by (task) (shai_flow{{{PIPELINE}}}) * 0",
                    "task",
                )
            ),
            Query(f"{_edge('reads', 'conduit', 'task')} or {_edge('writes', 'task', 'conduit')}"),
        ),
    ),
    Panel(
        "conduits",
        "Decisions by conduit",
        "Decisions one by one in the chosen range, by the conduit's name in the manifest; empty for what belongs to no "
        "conduit of it. Accesses that the kernel allows by itself need none.",
        Kind.TABLE,
        "short",
        (
            Query(_decisions("pipeline, conduit", 'allowed="true"'), "allowed"),
            Query(_decisions("pipeline, conduit", 'allowed="false"'), "refused"),
        ),
        columns=(Column("pipeline", "pipeline", "pipeline"), Column("conduit", "conduit")),
        decimals=0,
        more="policies",
    ),
    shared.OPENS,
    Panel(
        "interceptions",
        "Waits for the monitor per second, by kind",
        "How often a task's progress waited for the monitor, or for a supervisor in its place.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (kind) (rate(shai_interceptions_total{{{PIPELINE}}}[$__rate_interval]))", "{{kind}}"),),
        stacked=True,
    ),
    Panel(
        "decision-time",
        "Time for a decision",
        "Time that the monitors took for a decision, by kind: 99th percentile. It is counted for each monitor and not "
        "for each pipeline.",
        Kind.TIMESERIES,
        "s",
        (
            Query(
                "histogram_quantile(0.99, sum by (le, kind) (rate(shai_decision_seconds_bucket"
                '{cluster=~"$cluster",namespace=~"$namespace",member=~"$member"}[$__rate_interval])))',
                "{{kind}} p99",
            ),
        ),
    ),
    Panel(
        "cpu",
        "CPU by task",
        "Processors' time that the processes of each task take, and their supervisors.",
        Kind.TIMESERIES,
        "percentunit",
        (
            Query(
                f"sum by (task, part) (rate(shai_cpu_seconds_total{{{PIPELINE}}}[$__rate_interval]))",
                "{{task}} ({{part}})",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "workers",
        "Workers",
        "Workers by task: rolled_back workers serve one session after the other, forked ones serve one only.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (task, kind) (shai_workers{{{PIPELINE}}})", "{{task}}, {{kind}}"),),
        stacked=True,
    ),
    shared.SESSIONS,
    Panel(
        "tasks",
        "Tasks",
        "State of each task, and how far its confinement goes: full, partial (the monitor is not the superuser) or "
        "none.",
        Kind.TABLE,
        "short",
        (
            Query(
                f"sum by (pipeline, task, state, level) ((shai_task_state{{{PIPELINE}}} == 1) "
                "* on (cluster, instance, pipeline, task) group_left (level) "
                f"(shai_task_enforcement{{{PIPELINE}}} == 1))",
                "members",
            ),
        ),
        columns=(*_OF_TASK, Column("state", "state"), Column("level", "enforcement")),
        decimals=0,
    ),
)
