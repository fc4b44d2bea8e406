# SPDX-License-Identifier: BSD-2-Clause
"""The reference page: every field of every kind, with its meaning and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds.resource import GROUP, NAME_RULE, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crds.resource import Resource
    from crds.schema import Schema

_INTRODUCTION = f"""# Resources

<!-- Written by python -m crds.generate from crds/kinds; change it there. -->

All kinds of the group `{GROUP}`, version `{VERSION}`, as `kubectl explain` describes them too. `kubectl get shai -A`
lists every object in a namespace. Fields in **bold** are required. Durations are whole seconds; a text that may be a
number or a percentage is written `1` or `"50%"`. Examples of every kind: [crds/examples](../../crds/examples).
"""


def page(kinds: Sequence[Resource]) -> str:
    """Return the page, as Markdown."""
    lines = [_INTRODUCTION, "| kind | short name | scope | what it is |", "| --- | --- | --- | --- |"]
    lines += [
        f"| [{kind.kind}](#{kind.kind.lower()}) | `{kind.short}` | {_scope(kind)} | {_cell(_first(kind.about))} |"
        for kind in kinds
    ]
    for kind in kinds:
        lines += ["", *_section(kind)]
    return "\n".join(lines) + "\n"


def _scope(kind: Resource) -> str:
    return "namespace" if kind.namespaced else "cluster"


def _first(about: str) -> str:
    return about.partition(". ")[0].rstrip(".") + "."


def _section(kind: Resource) -> Iterator[str]:
    schema = kind.schema()
    yield f"## {kind.kind}"
    yield ""
    names = f"names are DNS labels of at most {kind.longest_name} characters"
    yield f"{kind.about} Resource `{kind.plural}.{GROUP}`; {names}."
    yield from _rules([rule for rule in schema["x-kubernetes-validations"] if rule != NAME_RULE])
    for part in ("spec", "status"):
        if part in schema["properties"]:
            yield from ["", f"### {kind.kind} {part}", "", "| field | type | meaning |", "| --- | --- | --- |"]
            yield from _rows(schema["properties"][part], "")
            yield from _rules(list(_all_rules(schema["properties"][part])))
        if part == "status":
            yield from _conditions(kind)


def _conditions(kind: Resource) -> Iterator[str]:
    if kind.conditions:
        yield from ["", "| condition | meaning and reasons |", "| --- | --- |"]
        yield from (f"| `{name}` | {_cell(str(about))} |" for name, about in kind.conditions.items())


def _rows(schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        at = f"{path}{name}"
        shown = f"**`{at}`**" if name in required else f"`{at}`"
        if name == "conditions":
            yield f"| {shown} | {_cell(_type(field))} | Where the object stands; see below. |"
            continue
        yield f"| {shown} | {_cell(_type(field))} | {_cell(field['description'])} |"
        yield from _beneath(field, at)


def _beneath(field: Schema, at: str) -> Iterator[str]:
    while field.get("type") == "array":
        field, at = field["items"], f"{at}[]"
    yield from _rows(field, f"{at}.")


def _type(field: Schema) -> str:
    """Describe a type and the limits that its description does not mention: lengths, words, patterns."""
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    kind = field["type"]
    if kind == "array":
        unique = {"set": ", no two alike", "map": f", by {', '.join(field.get('x-kubernetes-list-map-keys', ()))}"}
        return f"list of {_plain(field['items'])}{unique.get(field['x-kubernetes-list-type'], '')}"
    if kind == "object" and "additionalProperties" in field:
        return "map of texts"
    if "enum" in field:
        return " \\| ".join(f"`{word}`" for word in field["enum"])
    if kind == "string" and field.get("format") != "date-time":
        return f"text, at most {field['maxLength']:,}"
    return _plain(field)


def _plain(field: Schema) -> str:
    if field.get("format") == "date-time":
        return "time"
    if "enum" in field:
        return " \\| ".join(f"`{word}`" for word in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "numbers or texts"
    return {"string": "text", "integer": "number", "boolean": "true or false", "object": "object", "array": "lists"}[
        field["type"]
    ]


def _all_rules(schema: Schema) -> Iterator[Schema]:
    yield from schema.get("x-kubernetes-validations", ())
    for field in schema.get("properties", {}).values():
        yield from _all_rules(field)
    if "items" in schema:
        yield from _all_rules(schema["items"])


def _rules(rules: list[Schema]) -> Iterator[str]:
    if rules:
        yield from ["", "Refused with:", ""]
        yield from dict.fromkeys(f"- {rule['message']}" for rule in rules)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("<", "&lt;").replace("|", "\\|").replace("\\\\|", "\\|")
