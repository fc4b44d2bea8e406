# SPDX-License-Identifier: BSD-2-Clause
"""The namespaces of a JailPool: which ones may use it, what each of them has, and whose a member is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds.kinds import shared
from crds.schema import (
    LABEL_LENGTH,
    distinct,
    items,
    keyed,
    moment,
    name,
    number,
    record,
    rule,
    text,
    texts,
    word,
)

if TYPE_CHECKING:
    from crds.schema import Schema

_UID_LENGTH = 64
_KEY_LENGTH = 317
"""A prefix of 253 characters, a slash, and a name of 63."""
_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


def _value() -> Schema:
    return text("Value of a label.", longest=LABEL_LENGTH, shortest=0, pattern=_VALUE)


_EXPRESSION = record(
    "A requirement.",
    {
        "key": text("Key of the label.", longest=_KEY_LENGTH, pattern=_KEY),
        "operator": word(
            "In, NotIn: whether values have the label's value; NotIn also holds without the label. Exists, "
            "DoesNotExist: whether there is such a label.",
            "In",
            "NotIn",
            "Exists",
            "DoesNotExist",
        ),
        "values": distinct("The values of In and NotIn.", _value(), most=64),
    },
    required=("key", "operator"),
    rules=(
        rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "In and NotIn need values; Exists and DoesNotExist have none",
        ),
    ),
)

_SELECTOR = record(
    "Namespaces with these labels; an empty selector means all of them. Who may label a namespace gives it the pool.",
    {
        "matchLabels": texts("The labels that a namespace has, with their values.", _value(), most=32),
        "matchExpressions": items("Requirements, all of which a namespace meets.", _EXPRESSION, most=32),
    },
)

ALLOWED_NAMESPACES = record(
    "The namespaces whose pipelines may use the pool: those that are named, and those that the selector finds. Left "
    "out: those that it serves already, and none when it serves none yet. Each member belongs to one of them, and "
    "keeps its data when its namespace may not use the pool any more; nothing of another namespace gets there.",
    {
        "names": distinct(
            "Namespaces by name. Each of them gets an equal part of the members, in this order.",
            name("Name of a namespace."),
            most=64,
        ),
        "selector": _SELECTOR,
    },
)

OWNER = {
    "namespace": name("The namespace that the member belongs to until it is removed; none: it has had nothing of any."),
    "namespaceUID": text(
        "The UID of this namespace: another one of the same name does not get the member.",
        longest=_UID_LENGTH,
    ),
}
"""Fields of a member's row."""

STAYS = rule(
    "!has(oldSelf.__namespace__) || (!has(self.__namespace__) && !has(self.configuration)) || "
    "(has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__ && "
    "has(self.namespaceUID) == has(oldSelf.namespaceUID) && "
    "(!has(self.namespaceUID) || self.namespaceUID == oldSelf.namespaceUID))",
    "a member belongs to one namespace until it is removed, because it has the data of this one; remove it first",
)
"""Rule of a member's row. It also stops an operator that knows an older status."""


def release(about: str) -> Schema:
    """Describe the name of a release."""
    return text(about, longest=LABEL_LENGTH, shortest=0)


def _rollout() -> Schema:
    return shared.rollout_status(
        "The state of the rollout; a restarted operator continues from here.",
        {
            "reason": text(
                "The reason of the condition RolledOut of its pipelines, where it is about all of them.",
                longest=64,
            ),
            "superseded": release("An earlier candidate that the canaries keep while this one is compared."),
            "canaries": items(
                "The members that have the candidate, in the order in which they were chosen.",
                text("Name of a member.", longest=LABEL_LENGTH),
                most=shared.MEMBERS_LIMIT,
            ),
            "watchedSince": moment("When all members of this step became ready."),
            "countedSince": moment(
                "When all members of this step became ready for the first time; what they have done since is compared."
            ),
            "detail": text(
                "What the monitor said that refused the release, if it was rolled back for this reason. The "
                "statuses of pipelines and policies do not have it.",
                longest=4096,
                shortest=0,
            ),
            "interruptions": number("How often they have stopped being ready since the step started."),
            "before": record(
                "The counters of members without the change, before the last step.",
                {
                    "sessions": number("Sessions that ended."),
                    "decisions": number("Decisions of their monitors."),
                    "refusals": number("Decisions that were denials."),
                    "microseconds": number("Time that the monitors took for decisions, in microseconds."),
                },
            ),
        },
    )


def _releases() -> dict[str, Schema]:
    return {
        "stableRelease": release("The release on members that take part in no rollout."),
        "candidateRelease": release("The release that is being rolled out."),
        "rejectedRelease": release("The release that was rolled back."),
        "rollout": _rollout(),
    }


_SHARE = record(
    "A namespace's part of the pool.",
    {
        "name": name("The namespace."),
        "uid": text("Its UID.", longest=_UID_LENGTH, shortest=0),
        "withdrawn": text(
            "Why it may not use the pool any more: its members run nothing, and keep its data.",
            longest=1024,
        ),
        "replicas": number("The number of its members."),
        "readyReplicas": number("The number of its members whose monitors answer and serve their bundle."),
        "updatedReplicas": number("The number of its members with the desired configuration and release."),
        **_releases(),
    },
    required=("name", "uid"),
)

STATUS = {
    "namespaces": keyed(
        "The namespaces that have members, or may have them, and what runs there.",
        _SHARE,
        by="uid",
        most=shared.MEMBERS_LIMIT,
    ),
    "serves": text("The names of these namespaces.", longest=1024, shortest=0),
    "namespace": text(
        "Written by an earlier version of the operator, which served one namespace; so are stableRelease, "
        "candidateRelease, rejectedRelease and rollout beside it. Read once.",
        longest=LABEL_LENGTH,
        shortest=0,
    ),
    **_releases(),
}
"""Fields of a JailPool's status."""
