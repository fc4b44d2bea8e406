# SPDX-License-Identifier: BSD-2-Clause
"""Every field of a definition that names a Policy counts: what a release lacks, no monitor runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crds import kinds
from shai_operator.reconcile import references
from tests.reconcile.builders import inventory, resource

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str, ...]


def fields(schema: dict[str, Any], path: Path = ()) -> Iterator[Path]:
    """Yield the paths of a schema at which a policy is named; of a list, the one to its items."""
    known = schema.get("properties", {})
    if set(known) == {"name", "arguments"}:
        yield path
    for name, part in known.items():
        yield from fields(part, (*path, name))
    if "items" in schema:
        yield from fields(schema["items"], (*path, "[]"))


def spec(path: Path) -> Any:
    """Return a spec that names policy ``named`` at a path, and nothing else."""
    if not path:
        return {"name": "named"}
    return [spec(path[1:])] if path[0] == "[]" else {path[0]: spec(path[1:])}


NAMED = [
    (kind.kind, path)
    for kind in kinds.ALL
    if kind.kind in {"Pipeline", "Task", "FactSource", "Policy", "Principal"}
    for path in fields(kind.spec)
]


def test_the_schemas_have_fields_that_name_policies() -> None:
    assert ("Pipeline", ("conduits", "[]", "paths", "[]", "choices", "[]", "policy")) in NAMED
    assert ("Task", ("taint",)) in NAMED


@pytest.mark.parametrize(("kind", "path"), NAMED)
def test_every_field_that_names_a_policy_counts(kind: str, path: Path) -> None:
    content = spec(path)
    pipeline = resource("Pipeline", "syse", {"tasks": ["search"], **(content if kind == "Pipeline" else {})})
    task = resource("Task", "search", content if kind == "Task" else {})
    known = inventory(pipeline, task)
    assert references.policies(pipeline, known) == ("named",)
    assert references.names_policy(pipeline, "named", known)
