# SPDX-License-Identifier: BSD-2-Clause
"""Benchmark: the cost of enforcement for a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds import condition
from crds.resource import Column, Resource, condition_column
from crds.schema import distinct, items, keyed, moment, name, number, record, rule, text, word
from loadgen.plan import SEARCH
from loadgen.scenarios.definitions import SCENARIOS

if TYPE_CHECKING:
    from crds.schema import Schema

_DAY = 24 * 3600
_ROWS = 96
_THRESHOLDS = 16
_EXPRESSION_LENGTH = 128
_EXPRESSION = r'^[A-Za-z0-9µ_.,<>={}"%/ -]*$'
_WORKERS = 16

_STARTED = (
    "!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, "
    "c.type == 'Succeeded' && (c.status != 'Unknown' || c.reason == 'Running'))"
)

SCENARIO_NAMES = (SEARCH, *(scenario.name for scenario in SCENARIOS.values() if not scenario.unfriending))
"""Scenarios that can be compared in several modes. A Benchmark changes no facts, so none in which friendships end."""

FIGURES = (
    "queriesPerSecond",
    "cpuSecondsPerQuery",
    "cpuSecondsPerSession",
    "cpuAddedSecondsPerQuery",
    "cpuAddedSecondsPerSession",
    "cpuOverheadRatio",
    "throughputOverheadRatio",
    "latencySecondsP50",
    "latencySecondsP90",
    "latencySecondsP99",
    "interceptionsPerSession",
    "paperThroughputOverheadRatio",
)
"""The exact figures of a row, in seconds and ratios. Those that compare with mode baseline are missing there."""

_DECIMAL = r"^-?[0-9]+([.][0-9]+)?(e[+-][0-9]+)?$"


def _decimal(about: str) -> Schema:
    return text(about, longest=32, pattern=_DECIMAL)


_FIGURE = record(
    "An exact figure, as decimal texts.",
    {
        "name": word("The figure. Times are in seconds.", *FIGURES),
        "value": _decimal("The median of the rounds."),
        "low": _decimal("The lower end of its 95 % interval; missing after one round."),
        "high": _decimal("The upper end of its 95 % interval; missing after one round."),
    },
    required=("name", "value"),
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
        "figures": keyed("The same figures exactly, for programs.", _FIGURE, by="name", most=len(FIGURES)),
    },
    required=("sessionLength", "mode"),
)

_THRESHOLD = record(
    "The judgement of one of spec.thresholds.",
    {
        "threshold": text("The expression.", longest=_EXPRESSION_LENGTH),
        "exceeded": word(
            "Whether it is exceeded; also True if nothing was measured that it is about.", "True", "False"
        ),
        "message": text("The measured figures.", longest=512, shortest=0),
    },
    required=("threshold", "exceeded"),
)

_SUMMARY = 'Throughput overhead from the shortest to the longest sessions, such as "7.21 % … 2.52 %".'

_NOT_ALLOWED = ("NamespaceNotAllowed", "ModeNotAllowed", "SourceNotAllowed")
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
            "scenario": word(
                "The load. search: all users all the time, in sessions of each of sessionLengths. The others are named "
                "scenarios, with a session length of their own; a slice is a run of the whole scenario.",
                *SCENARIO_NAMES,
                default=SEARCH,
            ),
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
            "workers": record(
                "The processes that generate the load. They share the users.",
                {
                    "count": number("How many.", least=1, most=_WORKERS, default=1),
                    "as": word(
                        "Process: on the operator's machine. Job: pods of a Job in the namespace shai-load, which "
                        "need a cluster that runs pods.",
                        "Process",
                        "Job",
                        default="Process",
                    ),
                },
                default={},
            ),
            "thresholds": distinct(
                'What the cost must not exceed, such as "overhead>5%"; docs/benchmarks.md has the grammar. A threshold '
                "that is exceeded makes the condition WithinThresholds False.",
                text("An expression.", longest=_EXPRESSION_LENGTH, pattern=_EXPRESSION),
                most=_THRESHOLDS,
            ),
            "seed": number("Seed for the order of slices and the behaviour of users.", default=1),
            "deadlineSeconds": number(
                "The time limit of the whole measurement, in seconds.", least=1, most=_DAY, default=3600
            ),
        },
        required=("pipeline",),
        rules=(
            rule(
                "self.workers.count <= self.concurrentUsers",
                "workers.count is more than concurrentUsers: each worker needs a user",
            ),
        ),
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
        "thresholds": keyed("The judgement of each of spec.thresholds.", _THRESHOLD, by="threshold", most=_THRESHOLDS),
        "report": text("The command that makes a report of the results.", longest=512, shortest=0),
        "results": text(
            "The ConfigMap in this namespace with all figures, as results.json and table.txt.", longest=253, shortest=0
        ),
    },
    conditions={
        "Succeeded": condition.run(false=_NOT_ALLOWED, unknown=_NOT_ALLOWED),
        "WithinThresholds": condition.Condition(
            "Whether what was measured is within spec.thresholds; absent without thresholds.",
            true=("Within",),
            false=("Exceeded",),
            unknown=("Pending", "NotMeasured"),
        ),
    },
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
        condition_column("Within", "WithinThresholds", wide=True),
        Column("Scenario", ".spec.scenario", wide=True),
        Column("Dynamic", ".status.summary.dynamic", wide=True),
        Column("Dynamic-Lazy", ".status.summary.dynamicLazy", wide=True),
        Column("Control", ".status.summary.control", wide=True),
        condition_column("Succeeded", "Succeeded", wide=True),
        Column("Results", ".status.results", wide=True),
        Column("Report", ".status.report", wide=True),
        condition_column("Message", "Succeeded", "message", wide=True),
    ),
    selectable=(".spec.pipeline",),
)
