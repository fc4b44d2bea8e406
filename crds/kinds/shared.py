# SPDX-License-Identifier: BSD-2-Clause
"""Schemas that several kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds.schema import (
    LABEL_LENGTH,
    LIBRARY_OR_LABEL,
    SHA256,
    VARIABLE,
    Schema,
    items,
    keyed,
    moment,
    number,
    record,
    rule,
    share,
    text,
    texts,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH_LENGTH = 4096
CONDUIT_LENGTH = 1024
PREDICATE_LENGTH = 64
PAUSE_LIMIT = 24 * 3600
MEMBERS_LIMIT = 256
STEPS_LIMIT = 16
WAITS_LIMIT = 32

MODES = ("shai", "dynamic", "dynamic-lazy", "audit", "baseline")
"""How strictly pipelines are held to policies; Pipeline describes each."""

ABSOLUTE_PATH = r"^(/[^/\x00]+)+$"
HOST_PATH = r"^(/[A-Za-z0-9._@+-]+)+$"
"""A path that goes into files and commands of hosts, each with quotes, comments and placeholders of its own."""


_PERCENTAGE = (
    "size(s.members) > 3 ? 100 : size(s.members) == 2 ? int(s.members.charAt(0)) "
    ": int(s.members.charAt(0)) * 10 + int(s.members.charAt(1))"
)
"""The number in "50%". The API server does not know that these texts are short, and refuses rules that scan them."""

_ASCENDING = (
    rule(
        "self.filter(s, type(s.members) == int).map(s, int(s.members)).isSorted() && "
        f"self.filter(s, type(s.members) == string).map(s, {_PERCENTAGE}).isSorted()",
        "steps must ascend: every step has at least as many members as the one before",
    ),
    rule(
        "self.all(s, self.exists_one(other, other.members == s.members))",
        "two steps have the same members; keep one of them",
    ),
)


def variables(about: str, *, rules: tuple[Schema, ...] = ()) -> Schema:
    """Describe named texts."""
    item = record(
        "A named text.",
        {
            "name": text("Letters, digits and underscores.", longest=64, pattern=VARIABLE),
            "value": text("The text; empty when left out.", longest=32768, shortest=0),
        },
        required=("name",),
        rules=rules,
    )
    return keyed(about, item, by="name", most=256)


def policy_reference(about: str) -> Schema:
    """Describe the use of a policy."""
    return record(
        about,
        {
            "name": text(
                "Name of a Policy in this namespace, or of one of the standard library: library/friends.",
                longest=LABEL_LENGTH,
                pattern=LIBRARY_OR_LABEL,
            ),
            "arguments": texts(
                'A value for each of the policy\'s parameters, by name. "{name}" in a value stands for a parameter of '
                "the task or a placeholder of the path.",
                text("The parameter's value.", longest=4096, shortest=0),
                most=16,
            ),
        },
        required=("name",),
    )


def steps(about: str) -> Schema:
    """Describe the steps of a rollout."""
    step = record(
        "One step: this many members get the change, then they are watched.",
        {
            "members": share(
                "The number of members with the change after this step; a percentage is rounded up.", most=MEMBERS_LIMIT
            ),
            "pauseSeconds": number(
                "How long they are watched before they are judged and the next step starts, in seconds.",
                most=PAUSE_LIMIT,
                default=60,
            ),
        },
        required=("members",),
    )
    return items(about, step, most=STEPS_LIMIT, rules=_ASCENDING)


def rollout_status(about: str, more: Mapping[str, Schema] | None = None) -> Schema:
    """Describe the state of a rollout, with ``more`` fields."""
    return record(
        about,
        {
            "release": text("The release that is being rolled out.", longest=LABEL_LENGTH),
            "step": number("The present step, counted from 1; 0 before the first."),
            "steps": number("The number of steps."),
            "members": number("The number of members with the release."),
            "since": moment("When this step started."),
            "verdict": text("The last verdict on the step: Pending, Promote, Inconclusive or RollBack.", longest=32),
            "message": text("The figures on which the verdict is based.", longest=4096, shortest=0),
            **(more or {}),
        },
    )


def sha256(about: str) -> Schema:
    """Describe a SHA-256 in lower-case hexadecimal."""
    return text(about, longest=64, pattern=SHA256)


def access() -> Schema:
    """Describe the kind of access of a flow."""
    return word("The kind of access.", "read", "write")
