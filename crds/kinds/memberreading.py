# SPDX-License-Identifier: BSD-2-Clause
"""MemberReading: what a member has and only administrators read, sealed for one reader."""

from __future__ import annotations

from crds.condition import Condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import (
    Schema,
    distinct,
    immutable,
    moment,
    name,
    number,
    record,
    rule,
    switch,
    text,
    word,
)

_SEALED_LENGTH = 1 << 19
"""A page has 256 KiB before it is sealed (monitor/internal/reading), and base64 makes it longer by a third."""
_BASE64 = r"^[A-Za-z0-9+/]+={0,2}$"
_PLACE = r"^[0-9]{1,19}-[0-9a-f]{16}$"
_KINDS = (
    "decision", "denial", "binding", "session", "taint", "bundle", "fact", "document", "mode", "task", "analysis",
    "recovery", "reading", "retention",
)  # fmt: skip
_RECORDS = 1000


def _principal(about: str) -> Schema:
    return text(about, longest=253)


def _conduit(about: str) -> Schema:
    return text(about, longest=shared.PATH_LENGTH)


_LOG = record(
    "What a task has printed.",
    {
        "taskRun": name("A TaskRun in this namespace: the log of its task, on its member."),
        "task": name("One of the pipeline's tasks."),
        "principal": _principal(
            "For whom it is read: the policies decide whether this principal may. Left out: as an administrator."
        ),
        "region": text("The region that the principal is in.", longest=253),
        "previous": switch("true: what was printed under the label before the present one.", default=False),
        "before": text("The page before this place, which an earlier page names.", longest=64, pattern=_PLACE),
    },
    rules=(
        rule("has(self.taskRun) != has(self.task)", "give taskRun, or task and the pipeline"),
        rule("has(self.principal) || !has(self.region)", "region is the principal's: give principal, too"),
    ),
)

_EXPLAIN = record(
    "Why an access is allowed or denied.",
    {
        "principal": _principal("The user on whose behalf the access is made."),
        "region": text("The region that the user connects from.", longest=253),
        "task": name("The task that makes the access. Left out: the one that has users."),
        "conduit": _conduit("What is accessed, by its name in the pipeline."),
        "access": word("The kind of access.", "read", "write", default="read"),
    },
    required=("conduit",),
    rules=(rule("has(self.principal) || has(self.task)", "give principal, or a task without users"),),
)

_AUDIT = record(
    "The last records of the member's audit log.",
    {
        "kinds": distinct("Kinds of records. Left out: all.", word("A kind.", *_KINDS), most=len(_KINDS)),
        "principal": _principal("Only records about this user."),
        "conduit": _conduit("Only records about this conduit, or those beneath a path that ends in /."),
        "task": name("Only records about this task."),
        "since": moment("Only records since then."),
        "before": number("Only records with smaller numbers: the page before an earlier one. 0: all.", default=0),
        "limit": number("How many records, at most.", least=1, most=_RECORDS, default=_RECORDS),
    },
)

MEMBER_READING = Resource(
    kind="MemberReading",
    plural="memberreadings",
    short="shread",
    about="One page of what a member's monitor shows to administrators only. kubectl shai makes it for one command and "
    "deletes it. Whoever may create it reads, without any policy, what tasks of this namespace's pipelines print. The "
    "answer can be opened by its reader alone.",
    spec=record(
        "What is read, and by whom. One of log, explain and audit.",
        {
            "user": text(
                "Who reads it, as the API server names who creates this object. The monitor records it.", longest=1024
            ),
            "publicKey": text(
                "Of a key that was made for this object: HPKE with X25519 and ML-KEM-768, in base64. The member seals "
                "the answer for it.",
                longest=2048,
                pattern=_BASE64,
            ),
            "pipeline": name("A Pipeline in this namespace. It may be left out for the log of a TaskRun."),
            "member": name("The member that answers. Left out: the TaskRun's, or the first one that can answer."),
            "log": _LOG,
            "explain": _EXPLAIN,
            "audit": _AUDIT,
        },
        required=("user", "publicKey"),
        rules=(
            rule(
                "[has(self.log), has(self.explain), has(self.audit)].filter(is, is).size() == 1",
                "give one of log, explain and audit",
            ),
            rule(
                "has(self.pipeline) != (has(self.log) && has(self.log.taskRun))",
                "give pipeline, unless it is the log of a TaskRun, which names it",
            ),
            immutable("make another reading"),
        ),
    ),
    status={
        "member": text("The member that has answered.", longest=63),
        "sealed": text("The answer, in base64, for who has the private key.", longest=_SEALED_LENGTH, pattern=_BASE64),
        "completionTime": moment("When it was answered or refused. A minute later the object is deleted."),
    },
    conditions={
        "Succeeded": Condition(
            "Whether the member has answered. What it says of the question, such as that the policies deny it, is in "
            "the answer.",
            true=("Complete",),
            false=(
                "NotFound",
                "PoolMissing",
                "NamespaceNotAllowed",
                "NoSuchMember",
                "Unreachable",
                "NotRecorded",
                "TooMany",
                "Refused",
            ),
            unknown=("Pending",),
        )
    },
    columns=(
        Column("User", ".spec.user"),
        Column("Member", ".status.member"),
        condition_column("Reason", "Succeeded", "reason"),
        Column("Pipeline", ".spec.pipeline", wide=True),
        condition_column("Message", "Succeeded", "message", wide=True),
    ),
)
