# SPDX-License-Identifier: BSD-2-Clause
"""Parts of structural schemas.

Each part requires a description and a limit. Without limits the API server can neither restrict an object's size nor
estimate the cost of its CEL rules. ``kubectl explain`` shows neither ranges nor defaults, so the parts add them to the
descriptions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Schema = dict[str, Any]

LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""A DNS label; the field limits it to 63 characters."""
LIBRARY_OR_LABEL = r"^(library/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""The name of a policy: a DNS label, or one of the standard library."""
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""A name that $(NAME) can refer to."""
SHA256 = r"^[0-9a-f]{64}$"
CONDITION_TYPE = r"^[A-Z][A-Za-z]*$"
CONDITION_REASON = r"^[A-Z][A-Za-z]*$"

LABEL_LENGTH = 63
MESSAGE_LENGTH = 4096
INTEGER_LIMIT = 2**53 - 1
"""Counters stay exact in every JSON reader."""


def rule(expression: str, message: str) -> Schema:
    """Make a CEL rule and its message for objects that violate it."""
    return {"rule": expression, "message": message}


def rule_at_birth(expression: str, message: str) -> Schema:
    """Make a rule for a value that never changes, such as a name.

    It is not checked later: an object from before the rule must still be able to lose its finalizers.
    """
    return rule(f"oldSelf.hasValue() || {expression}", message) | {"optionalOldSelf": True}


def immutable(remedy: str) -> Schema:
    """Make the rule that a value never changes; ``remedy`` says what to do instead."""
    return rule("self == oldSelf", f"cannot change: {remedy}")


def text(
    about: str,
    *,
    longest: int,
    shortest: int = 1,
    pattern: str | None = None,
    default: str | None = None,
    rules: Sequence[Schema] = (),
) -> Schema:
    """Describe a text of at most ``longest`` characters."""
    made: Schema = {"type": "string", "maxLength": longest}
    if shortest:
        made["minLength"] = shortest
    if pattern is not None:
        made["pattern"] = pattern
    return _finish(about, made, default, rules)


def word(about: str, *words: str, default: str | None = None, rules: Sequence[Schema] = ()) -> Schema:
    """Describe a choice among fixed words."""
    return _finish(about, {"type": "string", "enum": list(words)}, default, rules)


def name(about: str, *, default: str | None = None, rules: Sequence[Schema] = ()) -> Schema:
    """Describe the name of an object: a DNS label."""
    return text(about, longest=LABEL_LENGTH, pattern=LABEL, default=default, rules=rules)


def number(
    about: str, *, least: int = 0, most: int = INTEGER_LIMIT, default: int | None = None, rules: Sequence[Schema] = ()
) -> Schema:
    """Describe a whole number of 64 bits from ``least`` to ``most``."""
    if most < INTEGER_LIMIT:
        about = f"{about} {least:,} to {most:,}."
    made = {"type": "integer", "format": "int64", "minimum": least, "maximum": most}
    return _finish(about, made, default, rules)


def switch(about: str, *, default: bool | None = None) -> Schema:
    """Describe a boolean, for the few fields where a third value is impossible."""
    return _finish(about, {"type": "boolean"}, default, ())


def moment(about: str) -> Schema:
    """Describe a time: RFC 3339."""
    return _finish(about, {"type": "string", "format": "date-time", "maxLength": 64}, None, ())


def share(about: str, *, most: int, default: int | str | None = None) -> Schema:
    """Describe a whole number from 1 to ``most``, or a percentage such as "50%"."""
    made = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "minimum": 1,
        "maximum": most,
        "maxLength": 4,
        "pattern": "^(100|[1-9][0-9]?)%$",
    }
    return _finish(f"{about} 1 to {most:,}, or 1% to 100%.", made, default, ())


def value(about: str, *, longest: int) -> Schema:
    """Describe a text or a whole number."""
    made = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": longest,
    }
    return _finish(about, made, None, ())


def record(
    about: str,
    fields: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    default: Mapping[str, Any] | None = None,
    rules: Sequence[Schema] = (),
) -> Schema:
    """Describe an object with known fields. ``default`` is for fields that have defaults themselves."""
    unknown = set(required) - set(fields)
    if unknown:
        raise ValueError(f"{about!r} requires {sorted(unknown)}, which are not among its fields {sorted(fields)}")
    made: Schema = {"type": "object", "properties": dict(fields)}
    if required:
        made["required"] = list(required)
    return _finish(about, made, default, rules)


def texts(about: str, values: Schema, *, most: int) -> Schema:
    """Describe a mapping of arbitrary names to texts."""
    made = {"type": "object", "maxProperties": most, "additionalProperties": values}
    return _finish(f"{about} At most {most:,} entries.", made, None, ())


def items(
    about: str,
    item: Schema,
    *,
    most: int,
    least: int = 0,
    default: Sequence[Any] | None = None,
    rules: Sequence[Schema] = (),
) -> Schema:
    """Describe a list that is replaced as a whole."""
    made: Schema = {"type": "array", "maxItems": most, "items": item, "x-kubernetes-list-type": "atomic"}
    if least:
        made["minItems"] = least
    return _finish(f"{about} At most {most:,} entries.", made, default, rules)


def distinct(
    about: str,
    item: Schema,
    *,
    most: int,
    least: int = 0,
    default: Sequence[Any] | None = None,
    rules: Sequence[Schema] = (),
) -> Schema:
    """Describe a list of distinct texts or numbers."""
    return items(about, item, most=most, least=least, default=default, rules=rules) | {"x-kubernetes-list-type": "set"}


def keyed(about: str, item: Schema, *, by: str, most: int, least: int = 0, rules: Sequence[Schema] = ()) -> Schema:
    """Describe a list of objects with distinct values of the field ``by``."""
    if by not in item.get("required", ()):
        raise ValueError(f"{about!r}: the items do not require their key {by}")
    made = items(about, item, most=most, least=least, rules=rules)
    return made | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [by]}


def _finish(about: str, made: Schema, default: Any, rules: Sequence[Schema]) -> Schema:
    described = {"description": about, **made}
    if default is not None:
        described["default"] = default
        if default != {}:
            described["description"] = f"{about} Default: {_shown(default)}."
    if rules:
        described["x-kubernetes-validations"] = list(rules)
    return described


def _shown(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
