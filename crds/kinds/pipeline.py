# SPDX-License-Identifier: BSD-2-Clause
"""Pipeline: tasks and conduits, their pool, and the rollout of changes."""

from __future__ import annotations

from crds import condition
from crds.condition import Condition
from crds.kinds import conduit, shared, taskrun
from crds.resource import Column, Resource, condition_column
from crds.schema import (
    VARIABLE,
    Schema,
    distinct,
    items,
    keyed,
    name,
    number,
    record,
    rule,
    switch,
    text,
    word,
)

_LISTED = 20
"""Flows, users and documents in lists of the status; the totals count all."""

_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$"
_LENGTH_OF_WINDOW = r"^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"

_EXPECTATION = record(
    "Instances of a parametrised task that are analysed ahead of time.",
    {
        "task": name("One of the pipeline's tasks."),
        "from": record(
            "The facts that define the instances: one for every tuple.",
            {
                "conduit": text(
                    "The conduit that says the facts, not the attributes of a Principal.", longest=shared.CONDUIT_LENGTH
                ),
                "says": text("The predicate.", longest=shared.PREDICATE_LENGTH),
                "parameters": distinct(
                    "The task's parameters but those of spec.parameters, in the order of the tuple's values.",
                    text("Name of a parameter.", longest=64),
                    most=8,
                    least=1,
                ),
            },
            required=("conduit", "says", "parameters"),
        ),
    },
    required=("task", "from"),
)

_DECLARED = record(
    "A parameter of the pipeline's tasks beside user and region. The monitor derives its value: neither tasks nor "
    "users supply it.",
    {
        "name": text("Its name in parameters of Tasks; not user or region.", longest=64, pattern=VARIABLE),
        "from": record(
            "A fact about the user: conduit says says(user, value). A session is refused unless there is exactly one, "
            "and ends when it changes.",
            {
                "conduit": text(
                    "The conduit that says the fact, not the attributes of a Principal.", longest=shared.CONDUIT_LENGTH
                ),
                "says": text("The predicate.", longest=shared.PREDICATE_LENGTH),
            },
            required=("conduit", "says"),
        ),
        "window": record(
            "Windows of time, one after the other. The value is the begin of the current one, in UTC: "
            "2026-01-01T08:00:00Z. Sessions end with their window.",
            {
                "start": text(
                    "The begin of the first window, in whole seconds of the years 1970 to 2200: 2026-01-01T00:00:00Z.",
                    longest=64,
                    pattern=_INSTANT,
                ),
                "every": text(
                    "The length of each window: 8h, or 1h30m. 1s to 87600h.", longest=32, pattern=_LENGTH_OF_WINDOW
                ),
            },
            required=("start", "every"),
        ),
    },
    required=("name",),
    rules=(
        rule("has(self.from) != has(self.window)", "give either from or window"),
        rule("!(self.name in ['user', 'region'])", "each session has a user and a region already; choose another name"),
    ),
)

_LIMITS = record(
    "Limits beyond which a change is not rolled out, or is rolled back.",
    {
        "denialsPercent": number(
            "Rolled back when the share of denials among the decisions of members with the change is higher by more "
            "than this, in percentage points, than on those without it.",
            most=100,
            default=5,
        ),
        "overheadPercent": number(
            "Rolled back when the monitor takes more time for a session by more than this, in percent, on members with "
            "the change than on those without it.",
            most=1000,
            default=50,
        ),
        "closedPercent": number(
            "Not rolled out when more than this share of the flows that are open now, in percent, would be closed.",
            most=100,
            default=50,
        ),
        "minimumSessions": number(
            "The number of sessions that members with the change must have served before they are judged. With "
            "fewer, the rollout waits.",
            most=1000000,
            default=20,
        ),
    },
    default={},
)


def _flows(about: str) -> Schema:
    flow = record(
        "Flows of one task to the conduits of one name under one policy.",
        {
            "task": text("The task.", longest=63),
            "instance": text('An instance of it, as an example: "worker(alice, de)".', longest=1024, shortest=0),
            "instances": number("The number of instances with such a flow."),
            "access": shared.access(),
            "conduits": text('The name of the conduits in the pipeline, such as "documents".', longest=63, shortest=0),
            "conduit": text(
                'A conduit of them, as an example: "/corpus/public/17.txt".', longest=shared.PATH_LENGTH, shortest=0
            ),
            "policy": text("The conduits' policy after the change.", longest=1024, shortest=0),
            "classes": number("The number of classes of conduits; every decision about a class is the same."),
            "documents": number("The number of conduits."),
            "flows": number("The number of flows: pairs of an instance and a conduit."),
        },
    )
    return items(about, flow, most=_LISTED)


_MODE_CHANGE = record(
    "A change of a mode.",
    {
        "kind": word("What has the mode.", "Policy", "Pipeline"),
        "name": text("Its name.", longest=1024),
        "from": text("The mode in force, empty for what is new.", longest=63, shortest=0),
        "to": text("The mode after the change.", longest=63, shortest=0),
        "effect": text("What happens to accesses that policies forbid.", longest=4096, shortest=0),
    },
)

_EFFECT = record(
    "The flows that the pending change would open and close, computed before it is enforced anywhere.",
    {
        "from": text("Hash of the bundle now in force.", longest=64, shortest=0),
        "to": text("Hash of the bundle with the change.", longest=64, shortest=0),
        "flowsBefore": number("The number of open flows now."),
        "flowsAfter": number("The number of open flows after the change."),
        "opened": _flows("Flows that would be opened, most first."),
        "openedTotal": number("The number of flows that would be opened."),
        "closed": _flows("Flows that would be closed, most first."),
        "closedTotal": number("The number of flows that would be closed."),
        "wouldClose": _flows("Flows that policies in mode Audit or Warn would close, most first; they stay open."),
        "wouldCloseTotal": number("The number of flows that policies in mode Audit or Warn would close."),
        "wouldOpen": _flows(
            "Flows that principals could open by choosing the policy for documents, and could not before, most first."
        ),
        "wouldOpenTotal": number("The number of flows that a choice of a policy could open, and none could before."),
        "wouldOpenNotKnown": items(
            "Policies that principals may choose and that ask for those of other documents: wouldOpen may miss flows "
            "that they open.",
            text("A policy.", longest=1024),
            most=_LISTED,
        ),
        "modes": items(
            "Policies of the namespace with another mode, this pipeline if it has another, and new ones that do not "
            "deny what is forbidden.",
            _MODE_CHANGE,
            most=_LISTED,
        ),
        "modesTotal": number("The number of policies and pipelines whose modes change."),
        "users": items(
            "Users whose flows change; the list may be incomplete.", text("A user.", longest=1024), most=_LISTED
        ),
        "usersTotal": number("The number of users whose flows change."),
        "documents": items(
            "Documents whose flows change; the list may be incomplete.",
            text("A conduit.", longest=shared.PATH_LENGTH),
            most=_LISTED,
        ),
        "documentsTotal": number("The number of documents whose flows change."),
    },
)

PIPELINE = Resource(
    kind="Pipeline",
    plural="pipelines",
    short="shpipe",
    about="Tasks, the conduits between them, and the mode of enforcement. Runs on its namespace's members of a pool.",
    spec=record(
        "The desired state of the pipeline.",
        {
            "mode": word(
                "shai: what the offline analysis has validated runs natively, the monitor decides the rest. dynamic: "
                "the monitor decides every access, by what was read before. dynamic-lazy: the same, but reads are "
                "logged, and decided on at the next write. audit: decided and recorded, never denied. baseline: "
                "nothing is enforced.",
                *shared.MODES,
                default="shai",
            ),
            "revocation": word(
                "When a live session loses an access after facts change. lazy: when it ends. immediate: at once.",
                "lazy",
                "immediate",
                default="lazy",
            ),
            "pool": name("Name of the JailPool that runs it.", default="default"),
            "rollout": record(
                "How changes are rolled out to the members of the pool.",
                {
                    "paused": switch(
                        "true holds a rollout where it stands; it goes on when set to false.", default=False
                    ),
                    "steps": shared.steps(
                        "The steps, in ascending order; when the last one has passed, all members follow. One member, "
                        "then all, when left out."
                    ),
                    "limits": _LIMITS,
                },
                default={},
            ),
            "taskRuns": taskrun.task_runs(),
            "variables": shared.variables(
                "Values for $(NAME) in conduits and tasks; those of the pool and of its provider take precedence."
            ),
            "tasks": distinct(
                "Names of Tasks in this namespace. status.graph says in which order they start.",
                name("Name of a Task."),
                most=64,
                least=1,
            ),
            "parameters": keyed(
                "Where parameters of the tasks get their values from, beside user and region.",
                _DECLARED,
                by="name",
                most=8,
            ),
            "expect": items(
                "Instances of parametrised tasks to analyse ahead of time.",
                _EXPECTATION,
                most=64,
            ),
            "conduits": conduit.conduits(),
            "keyValue": record(
                "The store that holds the conduits of kind tuple.",
                {
                    "socket": text(
                        "Path of its unix socket on the member: $(REDIS_SOCKET), that of the member's own store. In "
                        "mode baseline, in which tasks connect themselves, also one that the pool allows. $(NAME) is "
                        "replaced.",
                        longest=shared.PATH_LENGTH,
                    )
                },
                required=("socket",),
            ),
        },
        required=("tasks",),
        rules=(
            rule(
                "!has(self.expect) || self.expect.all(e, e.task in self.tasks)",
                "expect names a task that is not one of the pipeline's",
            ),
            *conduit.rules(),
        ),
    ),
    status={
        "pool": text("The JailPool that runs it.", longest=63),
        "bundle": shared.sha256("Hash of the pool's bundle in force."),
        "members": number("The number of members that serve it."),
        "wantedMembers": number("The number of its namespace's members, all of which are to serve it."),
        "graph": taskrun.graph(),
        "effect": _EFFECT,
        "rollout": shared.rollout_status("The state of the rollout of the last change."),
    },
    conditions={
        "Ready": Condition(
            "Whether all members of its namespace serve it, as the specs of this generation say.",
            false=("NoMembers", "MembersNotReady"),
            others=("Accepted", "RolledOut"),
        ),
        "Accepted": Condition(
            "Whether it can run.",
            true=("Accepted",),
            false=(
                "Invalid",
                "TaskMissing",
                "PolicyMissing",
                "PoolMissing",
                "PathConflict",
                "NamespaceNotAllowed",
                "ModeNotAllowed",
                "RuntimeMissing",
                "SourceNotAllowed",
                "AddressNotAllowed",
                "ChoicesNotShared",
            ),
            unknown=("Checking",),
        ),
        "RolledOut": condition.rolled_out("The state of the rollout."),
        "Analyzed": Condition(
            "The result of the last offline analysis.",
            true=("Complete", "TasksBlocked"),
            false=("Failed",),
            unknown=("Pending",),
        ),
    },
    columns=(
        Column("Mode", ".spec.mode"),
        condition_column("Ready", "Ready"),
        condition_column("Reason", "Ready", "reason"),
        Column("Members", ".status.members", "integer"),
        condition_column("Analyzed", "Analyzed", "reason"),
        Column("Pool", ".spec.pool", wide=True),
        Column("Opened", ".status.effect.openedTotal", "integer", wide=True),
        Column("Closed", ".status.effect.closedTotal", "integer", wide=True),
        Column("Step", ".status.rollout.step", "integer", wide=True),
        Column("Verdict", ".status.rollout.verdict", wide=True),
        condition_column("Message", "Ready", "message", wide=True),
    ),
    selectable=(".spec.pool", ".spec.mode"),
)
