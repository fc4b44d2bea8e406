# SPDX-License-Identifier: BSD-2-Clause
"""OfflineAnalysis and its runs."""

from __future__ import annotations

from crds import condition
from crds.condition import Condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import Schema, immutable, items, keyed, moment, name, number, record, rule, switch, text, word

_DAY = 24 * 3600
_OFFLINE_NAME_LENGTH = 52
"""A run's name is its OfflineAnalysis's with a hyphen and up to ten more characters, as for a CronJob."""

_RUN_NAME_LENGTH = 76
"""A run on a change has its pipeline's name with a hyphen and twelve digits of the bundle's hash."""

_ACCESSES_LISTED, _WARNINGS_LISTED, _CAUSES = 64, 20, 3
_SHARDS = 64
_SHORT = 256
"""Characters of a text in a list that may have hundreds."""


def _scope(default: str) -> Schema:
    return word(
        "The instances to analyse. All: every expected one. Active: those with sessions.",
        "All",
        "Active",
        default=default,
    )


def _shards() -> Schema:
    return record(
        "Divides the run among pods of a Job in the namespace shai-analysis, for each member in turn. Left out: each "
        "member analyses by itself. This needs deploy/shards and a cluster that runs pods.",
        {
            "count": number(
                "The number of pods for a member; each analyses an equal part of the instances.", least=1, most=_SHARDS
            ),
            "cpuMillicores": number(
                "Processor time that is reserved for each pod, in thousandths of a processor.",
                least=10,
                most=1048576,
                default=1000,
            ),
            "memoryMegabytes": number(
                "Memory of each pod, reserved and at most, in megabytes of 1,048,576 bytes.",
                least=64,
                most=1048576,
                default=2048,
            ),
        },
        required=("count",),
    )


_SHARDED = rule(
    "!has(self.shards) || self.scope == 'All'", "shards divide the analysis of all instances: leave scope at All"
)

_SCHEDULE = rule(
    "self.matches('^[0-9A-Za-z*/,#-]+( [0-9A-Za-z*/,#-]+){4}$')",
    'not a schedule; expected five fields (minute, hour, day of month, month, day of week) such as "30 2 * * *"',
)

OFFLINE_ANALYSIS = Resource(
    kind="OfflineAnalysis",
    plural="offlineanalyses",
    short="oa",
    longest_name=_OFFLINE_NAME_LENGTH,
    about="Schedules the offline analysis of a pipeline, and runs it on changes. Creates AnalysisRuns.",
    spec=record(
        "When the pipeline is analysed, and which part of it.",
        {
            "pipeline": name("Name of the Pipeline in this namespace."),
            "schedule": text(
                'When, as in cron: minute, hour, day of month, month and day of week, such as "30 2 * * *".',
                longest=256,
                rules=(_SCHEDULE,),
            ),
            "timeZone": text(
                "Time zone of the schedule, by its name in the tz database, such as Europe/Berlin.",
                longest=64,
                pattern=r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$",
                default="Etc/UTC",
            ),
            "concurrencyPolicy": word(
                "What happens when the previous run has not finished. Allow: both run. Forbid: the new one is skipped. "
                "Replace: the old one is cancelled.",
                "Allow",
                "Forbid",
                "Replace",
                default="Forbid",
            ),
            "suspend": switch(
                "true makes no more runs, by schedule or by change; those under way go on.", default=False
            ),
            "startingDeadlineSeconds": number(
                "How late a run may start if its time was missed, in seconds. Left out: no limit.",
                least=1,
                most=7 * _DAY,
            ),
            "scope": _scope("All"),
            "onChange": word(
                "What happens when the pool's bundle changes. Run: a run is created. Ignore: nothing.",
                "Run",
                "Ignore",
                default="Run",
            ),
            "successfulRunsHistoryLimit": number("The number of successful runs to keep.", most=100, default=3),
            "failedRunsHistoryLimit": number("The number of other finished runs to keep.", most=100, default=1),
            "deadlineSeconds": number("The time limit of a run, in seconds.", least=1, most=_DAY, default=3600),
            "shards": _shards(),
        },
        required=("pipeline", "schedule"),
        rules=(_SHARDED,),
    ),
    status={
        "active": items(
            "Unfinished runs, by name.", text("Name of an AnalysisRun.", longest=_RUN_NAME_LENGTH), most=64
        ),
        "lastScheduleTime": moment("The last scheduled time for which a run was created."),
        "lastSuccessfulTime": moment("When the last successful run completed."),
        "nextScheduleTime": moment("The next scheduled time."),
    },
    conditions={
        "Ready": Condition(
            "Whether it creates runs.",
            true=("Scheduled",),
            false=("Suspended", "InvalidSchedule", "NeverFires", "PipelineMissing"),
        )
    },
    columns=(
        Column("Pipeline", ".spec.pipeline"),
        Column("Schedule", ".spec.schedule"),
        condition_column("Reason", "Ready", "reason"),
        Column("Last", ".status.lastScheduleTime", "date"),
        Column("Succeeded", ".status.lastSuccessfulTime", "date"),
        Column("Next", ".status.nextScheduleTime", wide=True),
        Column("Zone", ".spec.timeZone", wide=True),
        condition_column("Message", "Ready", "message", wide=True),
    ),
    selectable=(".spec.pipeline",),
)

_MEMBER = record(
    "The result of the run on one member.",
    {
        "name": text("The member.", longest=63),
        "state": word(
            "The state of the run there. Unready: the monitor does not serve, and the member takes no part.",
            "Unready",
            "Pending",
            "Running",
            "Complete",
            "Failed",
        ),
        "done": number("The finished part of the phase."),
        "total": number("The total of the phase; 0 when unknown."),
        "bundle": text("Hash of the bundle that was analysed.", longest=64, shortest=0),
        "conduits": number("The number of conduits."),
        "classes": number("The number of classes of conduits."),
        "instances": number("The number of analysed instances."),
        "durationMilliseconds": number("Its duration, in milliseconds."),
        "message": text("Why it failed, takes no part, or waits.", longest=1024, shortest=0),
    },
    required=("name",),
)

_TALLY = {
    "expected": number("Expected accesses: pairs of an instance and a conduit."),
    "granted": number("Accesses that are allowed without asking the monitor."),
    "refused": number("Accesses that a policy forbids: the monitor refuses them."),
    "undecided": number("Accesses that depend on facts at the time of the access: the monitor decides on them."),
}

_CAUSE = record(
    "A policy that does not grant accesses, with one access as an example.",
    {
        "policy": text("The policy; left out for conduits without one.", longest=_SHORT),
        "count": number("The number of accesses."),
        "instance": text("The instance, as an example.", longest=_SHORT),
        "conduit": text("The conduit, as an example.", longest=_SHORT),
        "reason": text("The reason; it starts with the policy and its arguments.", longest=_SHORT),
        "suggestion": text("The smallest change by which the policy would allow the example.", longest=_SHORT),
        "mode": text("Audit or Warn: the example is recorded and allowed. Left out: it is denied.", longest=_SHORT),
    },
)

_ACCESSES = record(
    "The result for the expected accesses of one task to one set of conduits, on the member that grants "
    "the smallest share of them.",
    {
        "task": text("The task.", longest=1024),
        "access": shared.access(),
        "conduits": text("Name of the conduits in the pipeline.", longest=1024),
        "instances": number("Instances of the task that can start."),
        **_TALLY,
        "refusedBecause": items("The policies that refuse most of them.", _CAUSE, most=_CAUSES),
        "undecidedBecause": items("The policies that leave most of them undecided.", _CAUSE, most=_CAUSES),
    },
)

_WARNING = record(
    "Instances of a task cannot do the task's work: they cannot start, or of a set of conduits "
    "that it lists everything is refused.",
    {
        "task": text("The task.", longest=1024),
        "access": shared.access(),
        "conduits": text(
            "Name of the conduits in the pipeline; left out for instances that cannot start.", longest=1024
        ),
        "instance": text("One of the instances.", longest=1024),
        "instances": number("The number of such instances."),
        "message": text("What the instances cannot do, and why.", longest=1024),
        "suggestion": text("The smallest change that would allow it.", longest=1024),
    },
)

ANALYSIS_RUN = Resource(
    kind="AnalysisRun",
    plural="analysisruns",
    short="oarun",
    longest_name=_RUN_NAME_LENGTH,
    about="One offline analysis of a pipeline, on all members of its pool. Created by an OfflineAnalysis or by a user.",
    spec=record(
        "The analysis to run. Immutable.",
        {
            "pipeline": name("Name of the Pipeline in this namespace."),
            "offlineAnalysis": name("The OfflineAnalysis that created it; left out for runs created by a user."),
            "scope": _scope("All"),
            "full": switch("Whether to ignore earlier results.", default=False),
            "trigger": word(
                "Why it was created. Schedule: at a scheduled time. Change: the bundle changed. Manual: by a user.",
                "Schedule",
                "Change",
                "Manual",
                default="Manual",
            ),
            "scheduledTime": moment("The scheduled time of the run."),
            "bundle": shared.sha256(
                "Hash of the bundle to analyse; if the bundle is replaced, the run ends as Superseded."
            ),
            "deadlineSeconds": number("The time limit, in seconds.", least=1, most=_DAY, default=3600),
            "shards": _shards(),
        },
        required=("pipeline",),
        rules=(
            _SHARDED,
            rule(
                "!has(self.shards) || !self.full",
                "a run in shards uses no earlier results, but for accesses that were learnt since: leave full out",
            ),
            immutable("make another run"),
            rule(
                "self.trigger != 'Schedule' || (has(self.scheduledTime) && has(self.offlineAnalysis))",
                "trigger Schedule needs offlineAnalysis and scheduledTime",
            ),
            rule(
                "self.trigger == 'Schedule' || !has(self.scheduledTime)",
                "scheduledTime belongs to trigger Schedule",
            ),
        ),
    ),
    status={
        "startTime": moment("When it started."),
        "completionTime": moment("When it ended."),
        "durationMilliseconds": number("Its duration, in milliseconds."),
        "bundle": text("Hash of the bundle that was analysed.", longest=64, shortest=0),
        "progress": record(
            "The progress of all members together.",
            {
                "phase": text(
                    "The phase of the slowest member: conduits, classes, instances or views; shards, if in shards.",
                    longest=64,
                    shortest=0,
                ),
                "done": number("The finished part of the phase."),
                "total": number("The total of the phase; 0 when unknown."),
            },
        ),
        "members": keyed("The members, by name.", _MEMBER, by="name", most=shared.MEMBERS_LIMIT),
        **_TALLY,
        "accesses": items(
            "The results for the expected accesses, by task and conduits.", _ACCESSES, most=_ACCESSES_LISTED
        ),
        "warnings": items(
            "Tasks that cannot do their work; the list may be incomplete.", _WARNING, most=_WARNINGS_LISTED
        ),
        "warningsTotal": number("The number of all warnings."),
    },
    conditions={"Succeeded": condition.run(false=("Superseded",))},
    columns=(
        Column("Pipeline", ".spec.pipeline"),
        condition_column("Reason", "Succeeded", "reason"),
        Column("Done", ".status.progress.done", "integer"),
        Column("Total", ".status.progress.total", "integer"),
        Column("Granted", ".status.granted", "integer"),
        Column("Refused", ".status.refused", "integer"),
        Column("Warnings", ".status.warningsTotal", "integer"),
        condition_column("Succeeded", "Succeeded", wide=True),
        Column("Trigger", ".spec.trigger", wide=True),
        Column("Phase", ".status.progress.phase", wide=True),
        Column("Undecided", ".status.undecided", "integer", wide=True),
        Column("Milliseconds", ".status.durationMilliseconds", "integer", wide=True),
        Column("Bundle", ".status.bundle", wide=True),
        condition_column("Message", "Succeeded", "message", wide=True),
    ),
    selectable=(".spec.pipeline", ".spec.offlineAnalysis", ".spec.trigger"),
)
