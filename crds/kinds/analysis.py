# SPDX-License-Identifier: BSD-2-Clause
"""OfflineAnalysis and its runs."""

from __future__ import annotations

from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import Schema, immutable, items, keyed, moment, name, number, record, rule, switch, text, word

_DAY = 24 * 3600
_OFFLINE_NAME_LENGTH = 52
"""A run's name is its OfflineAnalysis's with a hyphen and up to ten more characters, as for a CronJob."""

_RUN_NAME_LENGTH = 76
"""A run on a change has its pipeline's name with a hyphen and twelve digits of the bundle's hash."""

_ACCESSES_LISTED, _WARNINGS_LISTED, _CAUSES = 64, 20, 3
_SHORT = 256
"""Characters of a text in a list that may have hundreds."""


def _scope(default: str) -> Schema:
    return word(
        "What is analysed. All: every expected instance. Active: those with sessions.", "All", "Active", default=default
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
    about="When a pipeline is analysed ahead of time: by a schedule and on changes. Makes AnalysisRuns.",
    spec=record(
        "When, and what of it.",
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
                "What happens when the last run still goes on. Allow: both run. Forbid: the new one is left out. "
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
                "How late a run may start, in seconds, when its time was missed; without limit when left out.",
                least=1,
                most=7 * _DAY,
            ),
            "scope": _scope("All"),
            "onChange": word(
                "What happens when the pool's bundle changes. Run: a run is made. Ignore: nothing.",
                "Run",
                "Ignore",
                default="Run",
            ),
            "successfulRunsHistoryLimit": number("How many runs that were complete are kept.", most=100, default=3),
            "failedRunsHistoryLimit": number("How many other finished runs are kept.", most=100, default=1),
            "deadlineSeconds": number("How long a run may take, in seconds.", least=1, most=_DAY, default=3600),
        },
        required=("pipeline", "schedule"),
    ),
    status={
        "active": items("Runs under way, by name.", text("Name of an AnalysisRun.", longest=_RUN_NAME_LENGTH), most=64),
        "lastScheduleTime": moment("The last time by the schedule for which a run was made."),
        "lastSuccessfulTime": moment("When a run was last complete."),
        "nextScheduleTime": moment("The next time by the schedule."),
    },
    conditions={
        "Ready": "Whether runs are made. Reasons: Scheduled, Suspended, InvalidSchedule, NeverFires, PipelineMissing."
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
    "What the run found on one member.",
    {
        "name": text("The member.", longest=63),
        "state": word(
            "How far it is there. Unready: the monitor does not serve, and the run does without it.",
            "Unready",
            "Pending",
            "Running",
            "Complete",
            "Failed",
        ),
        "done": number("How much of the phase is done."),
        "total": number("How much there is; 0 when unknown."),
        "bundle": text("Hash of the bundle that was analysed.", longest=64, shortest=0),
        "conduits": number("Conduits known."),
        "classes": number("Classes that the conduits are in."),
        "instances": number("Instances analysed."),
        "durationMilliseconds": number("How long it took, in milliseconds."),
        "message": text("Why it failed, or is left out.", longest=1024, shortest=0),
    },
    required=("name",),
)

_TALLY = {
    "expected": number("Accesses that are expected: pairs of an instance and a conduit."),
    "granted": number("Those that run without asking the monitor."),
    "refused": number("Those that a policy forbids: the monitor refuses them if they happen."),
    "undecided": number("Those that depend on what is known only then: the monitor decides them."),
}

_CAUSE = record(
    "A policy for which accesses are not granted, with one of them as an example.",
    {
        "policy": text("The policy; left out for conduits without one.", longest=_SHORT),
        "count": number("How many accesses."),
        "instance": text("The instance, as an example.", longest=_SHORT),
        "conduit": text("The conduit, as an example.", longest=_SHORT),
        "reason": text("Why, beginning with the policy and its arguments.", longest=_SHORT),
        "suggestion": text("The smallest change with which the policy would allow the example.", longest=_SHORT),
        "mode": text("Audit or Warn: the example is recorded and allowed. Left out: it is denied.", longest=_SHORT),
    },
)

_ACCESSES = record(
    "What becomes of the accesses that one task is expected to make to one set of conduits, on the member that grants "
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
    "Says that instances of a task cannot do what the task was written for: they cannot start, or of a set of conduits "
    "that it lists everything is refused.",
    {
        "task": text("The task.", longest=1024),
        "access": shared.access(),
        "conduits": text(
            "Name of the conduits in the pipeline; left out for instances that cannot start.", longest=1024
        ),
        "instance": text("One of the instances.", longest=1024),
        "instances": number("How many instances."),
        "message": text("What they cannot do, and why.", longest=1024),
        "suggestion": text("The smallest change with which they could.", longest=1024),
    },
)

ANALYSIS_RUN = Resource(
    kind="AnalysisRun",
    plural="analysisruns",
    short="oarun",
    longest_name=_RUN_NAME_LENGTH,
    about="One offline analysis of a pipeline, on all members of its pool. Made by an OfflineAnalysis, or by hand.",
    spec=record(
        "What is analysed. It never changes.",
        {
            "pipeline": name("Name of the Pipeline in this namespace."),
            "offlineAnalysis": name("The OfflineAnalysis that made it; none for runs made by hand."),
            "scope": _scope("All"),
            "full": switch("Whether earlier results are left unused.", default=False),
            "trigger": word(
                "What made it. Schedule: its time had come. Change: the bundle had changed. Manual: somebody did.",
                "Schedule",
                "Change",
                "Manual",
                default="Manual",
            ),
            "scheduledTime": moment("The time by the schedule that it is for."),
            "bundle": shared.sha256(
                "Hash of the bundle that it is for; a run whose bundle is replaced ends as Superseded."
            ),
            "deadlineSeconds": number("How long it may take, in seconds.", least=1, most=_DAY, default=3600),
        },
        required=("pipeline",),
        rules=(
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
        "startTime": moment("When it began."),
        "completionTime": moment("When it ended."),
        "durationMilliseconds": number("How long it took, in milliseconds."),
        "bundle": text("Hash of the bundle that was analysed.", longest=64, shortest=0),
        "progress": record(
            "How far all members together are.",
            {
                "phase": text(
                    "What the member that is furthest behind is doing: conduits, classes, instances or views.",
                    longest=64,
                    shortest=0,
                ),
                "done": number("How much is done."),
                "total": number("How much there is; 0 when unknown."),
            },
        ),
        "members": keyed("The members, by name.", _MEMBER, by="name", most=shared.MEMBERS_LIMIT),
        **_TALLY,
        "accesses": items(
            "What becomes of the expected accesses, by task and conduits.", _ACCESSES, most=_ACCESSES_LISTED
        ),
        "warnings": items("Where tasks cannot do what they were written for, some.", _WARNING, most=_WARNINGS_LISTED),
        "warningsTotal": number("How many warnings there are."),
    },
    conditions={"Succeeded": f"Whether it is complete. Reasons: {shared.RUN_REASONS}"},
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
