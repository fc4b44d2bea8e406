# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a monitor's answers that the operator reads, and their types.

The API server refuses a whole status because of one field of a wrong type, and a reconciliation ends at it. So nothing
of an answer that is not of its shape gets further.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from shai_operator.monitors.errors import MonitorAnswerError
from shai_operator.reconcile.texts import LONGEST, cleaned

LARGEST = 1 << 53
"""The largest number: sums of many still have 64 bits."""


@dataclass(frozen=True)
class Text:
    """A text, which is cleaned and cut to ``longest`` characters; a ``pattern`` matches the whole of it."""

    longest: int = LONGEST
    pattern: str = ""


@dataclass(frozen=True)
class Verbatim:
    """A text for programs, in which every character counts, of the operator's own parser; nobody is shown it."""

    longest: int


@dataclass(frozen=True)
class Named:
    """A mapping from arbitrary names to values."""

    values: Shape


@dataclass(frozen=True)
class Listed:
    """A list of such values; with more than ``most`` it is refused. None: any number."""

    values: Shape
    most: int | None


Shape = type[int] | type[bool] | Text | Verbatim | Named | Listed | dict[str, "Shape"]
"""A number from 0, a truth value, a text, a mapping, a list, a mapping with these fields."""

TEXT, NAME = Text(), Text(1024, ".+")
_SHORT = Text(1024)
_HASH = Text(64, "([0-9a-f]{64})?")
_PIPELINES, _TASKS, _CONDUITS = 4096, 64, 256
"""How many pipelines a member has at most; what the schema of Pipeline allows to have of each kind."""
_FLOWS_LISTED, _CAUSES_LISTED, _REFUSALS_LISTED = 20, 3, 8
"""How many the monitor lists."""
_ERRORS = 1 << 14
_POLICY = 1 << 16
"""The longest text of a policy, with what it includes."""

STATUS: Shape = {
    "started": TEXT,
    "ready": bool,
    "reason": TEXT,
    "machine": {"backend": TEXT, "enforcement": TEXT},
    "bundle": {"label": Text(64), "hash": _HASH},
    "pipelines": Listed(
        {
            "name": NAME,
            "tasks": Listed({"name": NAME, "state": NAME, "completed": bool}, _TASKS),
            "sessionTotal": int,
            "lastAnalysis": {"hash": _HASH, "succeeded": bool},
        },
        _PIPELINES,
    ),
}
TASK: Shape = {"state": NAME, "message": TEXT}
RUN: Shape = {
    "state": Text(pattern="Running|Succeeded|Failed|Stopped"),
    "exitStatus": int,
    "signal": Text(32),
    "message": TEXT,
    "restarts": int,
    "denials": int,
    "refusals": Listed(
        {"operation": Text(256, ".+"), "conduits": Text(256), "policy": Text(256), "count": int}, _REFUSALS_LISTED
    ),
}
SEALED: Shape = {"sealed": Text(1 << 19, "[A-Za-z0-9+/]+={0,2}")}
PROBLEM: Shape = {"title": TEXT, "status": int, "detail": TEXT, "remedy": TEXT, "errors": Listed(TEXT, _ERRORS)}
PROGRESS: Shape = {"phase": Text(256), "done": int, "total": int}
_FINDINGS: Shape = Listed(
    {"source": NAME, "path": TEXT, "textLine": int, "textColumn": int, "message": TEXT, "code": TEXT}, None
)
VALIDATION: Shape = {
    "errors": _FINDINGS,
    "warnings": _FINDINGS,
    "parameters": Named(Listed(TEXT, None)),
    "composed": Named(Verbatim(_POLICY)),
}

_ACCESS = Text(pattern="read|write")
_FLOWS: Shape = Listed(
    {
        "pipeline": _SHORT,
        "task": Text(63, ".+"),
        "instance": _SHORT,
        "instances": int,
        "access": _ACCESS,
        "conduits": Text(63),
        "conduit": TEXT,
        "policy": _SHORT,
        "classes": int,
        "documents": int,
        "flows": int,
    },
    _FLOWS_LISTED,
)
_MODES: Shape = Listed(
    {"kind": Text(pattern="Policy|Pipeline"), "name": NAME, "from": Text(63), "to": Text(63), "effect": TEXT},
    _FLOWS_LISTED,
)
COMPARISON: Shape = {
    "from": _HASH,
    "to": _HASH,
    "flowsBefore": int,
    "flowsAfter": int,
    "opened": _FLOWS,
    "openedTotal": int,
    "closed": _FLOWS,
    "closedTotal": int,
    "wouldClose": _FLOWS,
    "wouldCloseTotal": int,
    "wouldOpen": _FLOWS,
    "wouldOpenTotal": int,
    "wouldOpenNotKnown": Listed({"pipeline": NAME, "policies": Listed(NAME, None)}, None),
    "modes": _MODES,
    "modesTotal": int,
    "users": Listed(NAME, _FLOWS_LISTED),
    "usersTotal": int,
    "documents": Listed(Text(pattern=".+"), _FLOWS_LISTED),
    "documentsTotal": int,
}

_TALLY: dict[str, Shape] = {"expected": int, "granted": int, "refused": int, "undecided": int}
_CAUSES: Shape = Listed(
    {
        "policy": TEXT,
        "count": int,
        "instance": TEXT,
        "conduit": TEXT,
        "reason": TEXT,
        "suggestion": TEXT,
        "mode": TEXT,
    },
    _CAUSES_LISTED,
)
ANALYSIS: Shape = {
    "durationMicroseconds": int,
    "conduits": int,
    "classes": int,
    "instances": int,
    **_TALLY,
    "accesses": Listed(
        {
            "task": NAME,
            "access": _ACCESS,
            "conduits": NAME,
            "instances": int,
            **_TALLY,
            "refusedBecause": _CAUSES,
            "undecidedBecause": _CAUSES,
        },
        2 * _TASKS * _CONDUITS,
    ),
    "warnings": Listed(
        {
            "task": TEXT,
            "access": Text(pattern="(read|write)?"),
            "conduits": TEXT,
            "instance": TEXT,
            "instances": int,
            "message": TEXT,
            "suggestion": TEXT,
        },
        _TASKS * _CONDUITS,
    ),
}


def checked(found: Any, shape: Shape, place: str) -> Any:
    """Return the parts of a JSON value that its shape names; MonitorAnswerError when one is not of its type.

    As with the monitor's own client, what is left out or null is zero, false or empty.
    """
    match shape:
        case Text() | Verbatim():
            return _text(found, shape, place)
        case Named():
            entries = _typed(found, dict, "an object", place)
            return {cleaned(key): checked(value, shape.values, f"{place}.{key}") for key, value in entries.items()}
        case dict():
            fields = _typed(found, dict, "an object", place)
            return {field: checked(fields.get(field), inner, f"{place}.{field}") for field, inner in shape.items()}
        case Listed():
            entries = _typed(found, list, "a list", place)
            if shape.most is not None and len(entries) > shape.most:
                raise MonitorAnswerError(f"{place} has {len(entries)} entries; expected at most {shape.most}")
            return [checked(entry, shape.values, f"{place}[{index}]") for index, entry in enumerate(entries)]
    if shape is bool:
        return _typed(found, bool, "true or false", place)
    return _number(found, place)


def _text(found: Any, shape: Text | Verbatim, place: str) -> str:
    text: str = _typed(found, str, "a text", place)
    if isinstance(shape, Verbatim):
        if len(text) > shape.longest:
            raise _wrong(found, f"at most {shape.longest} characters", place)
        return text
    text = cleaned(text, shape.longest)
    if shape.pattern and re.fullmatch(shape.pattern, text) is None:
        raise _wrong(found, f"a text like {shape.pattern}", place)
    return text


def _number(found: Any, place: str) -> int:
    number: int = _typed(found, int, "a whole number", place)
    if isinstance(found, bool) or not 0 <= number <= LARGEST:
        raise _wrong(found, f"a whole number from 0 to {LARGEST}", place)
    return number


def _typed(found: Any, kind: type, what: str, place: str) -> Any:
    if found is None:
        return kind()
    if not isinstance(found, kind):
        raise _wrong(found, what, place)
    return found


def _wrong(found: Any, what: str, place: str) -> MonitorAnswerError:
    # Python writes no whole number of many digits, and a text can have millions of characters.
    begin = found[:80] if isinstance(found, str) else found
    said = f"{begin!r:.80}" if isinstance(found, str | float | bool) else type(found).__name__
    return MonitorAnswerError(f"{place} is {said}; expected {what}. Is it a Shai monitor of this version?")
