# SPDX-License-Identifier: BSD-2-Clause
"""Benchmark: the cost of enforcement for a pipeline."""

from __future__ import annotations

from crds import condition
from crds.resource import Column, Resource, condition_column
from crds.schema import distinct, items, moment, name, number, record, rule, text, word

_DAY = 24 * 3600
_ROWS = 96

_STARTED = (
    "!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, "
    "c.type == 'Succeeded' && (c.status != 'Unknown' || c.reason == 'Running'))"
)

_ROW = record(
    "The results of one mode, or of the control, at one session length.",
    {
        "sessionLength": number("Queries per session; 0 is one session for the whole run."),
        "mode": text(
            "The mode. control is a second installation in mode baseline: what it differs by from the first cannot be "
            "told from a cost.",
            longest=32,
        ),
        "queriesPerSecond": number("Queries per second."),
        "cpuMicrosecondsPerQuery": number("CPU time per query, in microseconds."),
        "cpuMicrosecondsPerSession": number("CPU time per session, in microseconds."),
        "cpuOverhead": text(
            "Additional CPU time compared with mode baseline, with its 95 % interval.", longest=128, shortest=0
        ),
        "throughputOverhead": text(
            "Lost throughput compared with mode baseline, with its 95 % interval.", longest=128, shortest=0
        ),
        "paper": text("The throughput overhead in the paper.", longest=32, shortest=0),
    },
    required=("sessionLength", "mode"),
)

_SUMMARY = 'Throughput overhead from the shortest to the longest sessions, such as "7.21 % … 2.52 %".'

_NOT_ALLOWED = ("NamespaceNotAllowed", "ModeNotAllowed")
"""Reasons while its pool does not allow it, and when it has waited for too long."""

BENCHMARK = Resource(
    kind="Benchmark",
    plural="benchmarks",
    short="shbench",
    about="A measurement of the cost of enforcement: the same load in several modes, in short alternating slices.",
    spec=record(
        "The measurement to run. Immutable after it has started.",
        {
            "pipeline": name("Name of the Pipeline in this namespace to measure."),
            "scenario": word("The load. search: users who log in and search.", "search", default="search"),
            "modes": distinct(
                "The modes to measure. baseline has to be among them; the others are compared with it.",
                word("A mode.", "baseline", "dynamic", "dynamic-lazy", "shai", "audit"),
                most=5,
                least=2,
                default=["baseline", "dynamic", "shai"],
                rules=(rule("'baseline' in self", "baseline is missing; the other modes are compared with it"),),
            ),
            "rounds": number("How often every mode is run at every session length.", least=1, most=1000, default=7),
            "sliceSeconds": number("The length of each slice, in seconds.", least=1, most=600, default=3),
            "sessionLengths": distinct(
                "Queries per session; 0 is one session for the whole run.",
                number("Queries.", most=1000000),
                most=16,
                least=1,
                default=[1, 8, 32, 0],
            ),
            "concurrentUsers": number("The number of concurrent users.", least=1, most=10000, default=24),
            "warmUpSeconds": number("The time of load before the first slice, in seconds.", most=3600, default=25),
            "seed": number("Seed for the order of slices and the behaviour of users.", default=1),
            "deadlineSeconds": number(
                "The time limit of the whole measurement, in seconds.", least=1, most=_DAY, default=3600
            ),
        },
        required=("pipeline",),
    ),
    status={
        "startTime": moment("When it started."),
        "completionTime": moment("When it ended."),
        "progress": record(
            "The progress of the measurement.",
            {
                "done": number("The number of finished slices."),
                "total": number("The number of all slices."),
                "message": text("The present step.", longest=1024, shortest=0),
            },
        ),
        "table": items("The overhead table, by session length and mode.", _ROW, most=_ROWS),
        "summary": record(
            "The cost of each mode, in a few words.",
            {
                "dynamic": text(f"Mode dynamic. {_SUMMARY}", longest=512, shortest=0),
                "dynamicLazy": text(f"Mode dynamic-lazy. {_SUMMARY}", longest=512, shortest=0),
                "shai": text(f"Mode shai. {_SUMMARY}", longest=512, shortest=0),
                "control": text(
                    f"What two equal installations without enforcement differ by. {_SUMMARY}", longest=512, shortest=0
                ),
            },
        ),
        "results": text(
            "The ConfigMap in this namespace with all figures, as results.json and table.txt.", longest=253, shortest=0
        ),
    },
    conditions={"Succeeded": condition.run(false=_NOT_ALLOWED, unknown=_NOT_ALLOWED)},
    rules=(
        rule(
            f"self.spec == oldSelf.spec || {_STARTED}",
            "spec cannot change: the measurement has begun; make another one",
        ),
    ),
    columns=(
        Column("Pipeline", ".spec.pipeline"),
        condition_column("Reason", "Succeeded", "reason"),
        Column("Done", ".status.progress.done", "integer"),
        Column("Total", ".status.progress.total", "integer"),
        Column("Shai", ".status.summary.shai"),
        Column("Dynamic", ".status.summary.dynamic", wide=True),
        Column("Dynamic-Lazy", ".status.summary.dynamicLazy", wide=True),
        Column("Control", ".status.summary.control", wide=True),
        condition_column("Succeeded", "Succeeded", wide=True),
        Column("Results", ".status.results", wide=True),
        condition_column("Message", "Succeeded", "message", wide=True),
    ),
    selectable=(".spec.pipeline",),
)
