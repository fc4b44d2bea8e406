# SPDX-License-Identifier: BSD-2-Clause
"""Pool: members and the hosts that they run on."""

from __future__ import annotations

from dashboards.model import Column, Kind, Limit, Panel, Query
from dashboards.queries.selectors import MEMBER, NAMESPACE, or_zero

_PROCESS = f'job="shai-monitor",{MEMBER}'
_READINESS = (("0", "not ready", "bad"), ("1", "ready", "good"))


def _members(state: str) -> Query:
    return Query(f'sum(shai_pool_members{{{NAMESPACE},state="{state}"}})', state)


PANELS = (
    Panel(
        "ready",
        "Members ready",
        "Of the members that the pools want: the part that serves its bundle.",
        Kind.STAT,
        "percentunit",
        (
            Query(
                f'sum(shai_pool_members{{{NAMESPACE},state="ready"}}) / '
                f'sum(shai_pool_members{{{NAMESPACE},state="desired"}})',
                "ready",
            ),
        ),
        limits=(Limit(0, "bad"), Limit(0.5, "warning"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "deciding",
        "Monitors that decide",
        "Monitors that Prometheus reaches and that decide on accesses. Where none does, accesses outside of capability "
        "sets are refused.",
        Kind.STAT,
        "short",
        (Query(or_zero(f"sum(shai_ready{{{MEMBER}}})", f"up{{{_PROCESS}}}"), "monitors"),),
        limits=(Limit(0, "bad"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "unrecorded",
        "Monitors that cannot record",
        "Monitors that refuse accesses because their audit log cannot be written.",
        Kind.STAT,
        "short",
        (Query(f"sum(shai_audit_refusing{{{MEMBER}}})", "monitors"),),
        limits=(Limit(0, "good"), Limit(1, "bad")),
        decimals=0,
    ),
    Panel(
        "verified",
        "Audit logs without a fault",
        "Of the monitors: the part whose audit log had no fault when its chain was last verified.",
        Kind.STAT,
        "percentunit",
        (Query(f"avg(shai_audit_verified{{{MEMBER}}})", "verified"),),
        limits=(Limit(0, "bad"), Limit(1, "good")),
        decimals=0,
    ),
    Panel(
        "rejected",
        "Scrapes refused",
        "Scrapes in the chosen range that monitors refused because others were under way: too many scrape them.",
        Kind.STAT,
        "short",
        (Query(f"sum(increase(shai_scrapes_rejected_total{{{MEMBER}}}[$__range]))", "scrapes"),),
        limits=(Limit(0, "good"), Limit(1, "warning")),
        decimals=0,
    ),
    Panel(
        "members",
        "Members",
        "Each member: where it runs, and what it has. local: on the operator's own machine; linux: on a host over SSH; "
        "bhyve: in a jail of a virtual machine.",
        Kind.TABLE,
        "short",
        (
            Query(
                f"max by (namespace, pool, member, provider, host, image, release) (shai_member_ready{{{MEMBER}}}"
                " * on (cluster, instance, namespace, pool, member) group_left (provider, host, image, release) "
                f"shai_member_info{{{MEMBER}}})",
                "state",
            ),
        ),
        states=_READINESS,
        columns=(
            Column("namespace", "namespace"),
            Column("pool", "pool"),
            Column("member", "member", "pool"),
            Column("provider", "provider"),
            Column("host", "host"),
            Column("image", "image"),
            Column("release", "release"),
        ),
    ),
    Panel(
        "counts",
        "Members by state",
        "desired: by the spec. current: that exist. ready: that serve their bundle. available: ready and not being "
        "changed. updated: with the newest configuration and release.",
        Kind.TIMESERIES,
        "short",
        tuple(_members(state) for state in ("desired", "current", "ready", "available", "updated")),
    ),
    Panel(
        "readiness",
        "Readiness",
        "When each member served its bundle.",
        Kind.STATES,
        "short",
        (Query(f"max by (member) (shai_member_ready{{{MEMBER}}})", "{{member}}"),),
        states=_READINESS,
    ),
    Panel(
        "sessions",
        "Sessions by member",
        "Sessions that are open now.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (member) (shai_sessions_active{{{MEMBER}}})", "{{member}}"),),
        stacked=True,
    ),
    Panel(
        "hosts",
        "Hosts that are reached",
        "Hosts of virtual machines (provider bhyve): when the operator's look at each succeeded.",
        Kind.STATES,
        "short",
        (Query(f"max by (host) (shai_host_reached{{{NAMESPACE}}})", "{{host}}"),),
        states=(("0", "not reached", "bad"), ("1", "reached", "good")),
    ),
    Panel(
        "machines",
        "Virtual machines by state",
        "Virtual machines of pools with provider bhyve. unknown: their host is not reached.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (state) (shai_virtual_machines{{{NAMESPACE}}})", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "free",
        "Free memory of hosts",
        "Free memory of each host of virtual machines, at the operator's last look.",
        Kind.TIMESERIES,
        "bytes",
        (Query(f"max by (host) (shai_host_free_memory_bytes{{{NAMESPACE}}})", "{{host}}"),),
    ),
    Panel(
        "jails",
        "Jails by host",
        "Members that are placed on each host of virtual machines.",
        Kind.TIMESERIES,
        "short",
        (Query(f"sum by (host) (shai_host_jails{{{NAMESPACE}}})", "{{host}}"),),
        stacked=True,
    ),
    Panel(
        "cpu",
        "CPU by member",
        "Processors' time of the tasks and supervisors of each member, and of its monitor.",
        Kind.TIMESERIES,
        "percentunit",
        (
            Query(f"sum by (member) (rate(shai_cpu_seconds_total{{{MEMBER}}}[$__rate_interval]))", "{{member}}, tasks"),
            Query(
                f"sum by (member) (rate(process_cpu_seconds_total{{{_PROCESS}}}[$__rate_interval]))",
                "{{member}}, monitor",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "memory",
        "Memory of the monitors",
        "Resident memory of each member's monitor, without its tasks (Linux).",
        Kind.TIMESERIES,
        "bytes",
        (Query(f"max by (member) (process_resident_memory_bytes{{{_PROCESS}}})", "{{member}}"),),
    ),
    Panel(
        "facts",
        "Facts",
        "Tuples in each monitor's catalog.",
        Kind.TIMESERIES,
        "short",
        (Query(f"max by (member) (shai_facts{{{MEMBER}}})", "{{member}}"),),
    ),
    Panel(
        "audit",
        "Audit records per second",
        "Records in the audit logs, by kind.",
        Kind.TIMESERIES,
        "ops",
        (Query(f"sum by (kind) (rate(shai_audit_records_total{{{MEMBER}}}[$__rate_interval]))", "{{kind}}"),),
        stacked=True,
    ),
    Panel(
        "backlog",
        "Audit records that wait",
        "Records that were accepted and are not durable yet.",
        Kind.TIMESERIES,
        "short",
        (Query(f"max by (member) (shai_audit_backlog_records{{{MEMBER}}})", "{{member}}"),),
    ),
    Panel(
        "audit-size",
        "Size of the audit logs",
        "Bytes on disk.",
        Kind.TIMESERIES,
        "bytes",
        (Query(f"max by (member) (shai_audit_size_bytes{{{MEMBER}}})", "{{member}}"),),
    ),
    Panel(
        "sources",
        "Failed fetches of facts per second",
        "Fetches from sources of facts that failed; the last facts stay in force.",
        Kind.TIMESERIES,
        "ops",
        (
            Query(
                f"sum by (source) (rate(shai_fact_source_failures_total{{{MEMBER}}}[$__rate_interval]))", "{{source}}"
            ),
        ),
    ),
    Panel(
        "source-age",
        "Age of fetched facts",
        "Time since facts were last fetched from each source. From the line on, a source that fails is an alert: "
        "ShaiFactSourceFailing.",
        Kind.TIMESERIES,
        "s",
        (Query(f"max by (source) (shai_fact_source_age_seconds{{{MEMBER}}})", "{{source}}"),),
        limits=(Limit(0, "good"), Limit(900, "warning")),
    ),
    Panel(
        "versions",
        "Versions",
        "Version of Shai of each member's monitor.",
        Kind.TABLE,
        "short",
        (Query(f"max by (namespace, member, version, goversion) (shai_build_info{{{MEMBER}}})"),),
        columns=(
            Column("namespace", "namespace"),
            Column("member", "member", "pool"),
            Column("version", "version"),
            Column("goversion", "Go"),
        ),
    ),
)
