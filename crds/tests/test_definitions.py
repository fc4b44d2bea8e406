# SPDX-License-Identifier: BSD-2-Clause
"""Rules for every definition, checked in the files that are applied."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from crds import generate, generated, kinds
from crds.kinds.benchmark import BENCHMARK
from crds.resource import Column
from crds.schema import keyed, record, text
from testing.cluster import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crds.resource import Resource

BASES = ROOT / "crds" / "bases"
OTHERS_SHORT_NAMES = {"po", "svc", "ns", "pvc", "pv", "sa", "ev", "hpa", "pdb", "crd", "pol", "cpol", "polex", "tr", "pr", "wf", "cwf", "cronwf", "app", "ro", "ar", "at", "exp"}  # fmt: skip  # noqa: E501
"""Of Kubernetes, Kyverno, Tekton, Argo."""


def definition(kind: Resource) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((BASES / kind.file).read_text())
    return made


def parts(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk a schema; the object's own metadata is Kubernetes'."""
    yield at, schema
    for name, field in schema.get("properties", {}).items():
        if at or name != "metadata":
            yield from parts(field, f"{at}.{name}")
    for beneath in ("items", "additionalProperties"):
        if beneath in schema:
            yield from parts(schema[beneath], f"{at}[]")


def fields() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in kinds.ALL:
        schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for at, field in parts(schema):
            if at not in (".apiVersion", ".kind"):
                yield f"{kind.kind}{at}", field


def test_files_are_what_the_schemas_say() -> None:
    assert generate.main(["--check"]) == 0, "run .venv/bin/python -m crds.generate"
    assert {path.name for path in BASES.iterdir()} == {kind.file for kind in kinds.ALL}
    listed = yaml.safe_load((ROOT / "crds" / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(["access", *(f"bases/{kind.file}" for kind in kinds.ALL)])


def test_a_file_that_has_drifted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "bases" / "policies.yaml"
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "files", lambda: {stale: "new"})
    assert generate.main(["--check"]) == 1
    assert "bases/policies.yaml is not what crds/kinds says" in capsys.readouterr().err
    assert not stale.exists()
    assert generate.main([]) == 0
    assert stale.read_text() == "new"
    assert generate.main(["--check"]) == 0


def test_runs_as_a_command() -> None:
    subprocess.run([sys.executable, "-m", "crds.generate", "--check"], cwd=ROOT, check=True, timeout=300)


@pytest.mark.parametrize(("at", "field"), list(fields()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_field_is_described_and_bounded(at: str, field: dict[str, Any]) -> None:
    assert len(field["description"]) > 4
    assert field["description"].endswith((".", "…")), field["description"]
    assert "x-kubernetes-preserve-unknown-fields" not in field
    if field.get("x-kubernetes-int-or-string"):
        assert "maxLength" in field
        return
    match field["type"]:
        case "string":
            assert "maxLength" in field or "enum" in field
        case "integer":
            assert (field["format"], "minimum" in field, "maximum" in field) == ("int64", True, True)
        case "array":
            assert "maxItems" in field
            assert field["x-kubernetes-list-type"] in ("atomic", "set", "map")
        case "object":
            assert "properties" in field or "maxProperties" in field
        case other:
            assert other == "boolean", f"{at} has type {other}"


def test_durations_say_their_unit() -> None:
    for at, _ in fields():
        name = at.rpartition(".")[2].removesuffix("[]").lower()
        if name.endswith(("interval", "timeout", "duration", "deadline", "pause", "period", "drain")):
            pytest.fail(f"{at}: a duration's name ends with Seconds or Milliseconds")


def test_names_and_columns() -> None:
    short = [definition(kind)["spec"]["names"]["shortNames"][0] for kind in kinds.ALL]
    assert len(set(short)) == len(short)
    assert not set(short) & OTHERS_SHORT_NAMES
    for kind in kinds.ALL:
        version = definition(kind)["spec"]["versions"][0]
        columns = version["additionalPrinterColumns"]
        assert columns[-1]["name"] == "Age"
        priorities = [column.get("priority", 0) for column in columns[:-1]]
        assert priorities == sorted(priorities), "wide columns stand behind the others"
        assert version["additionalPrinterColumns"][-1].get("priority", 0) == 0


CELLS = {
    ".spec.pipeline": "search-users",
    ".spec.policy": "search-users",
    ".spec.pool": "search-users",
    ".spec.taint.name": "search-users",
    ".spec.task": "search-users",
    ".status.member": "library-10",
    ".spec.user": "olga@example.org",
    ".spec.mode": "baseline",
    ".spec.provider": "local",
    ".spec.region": "us",
    ".spec.run": "Always",
    ".spec.schedule": "*/15 2-4 * * 1-5",
    ".status.summary.shai": "-12.3 % … -1234 %",
}
"""The longest usual value, for columns whose type and reasons do not determine it."""
NAMES = {
    "AnalysisRun": "nightly-29384756",
    "PolicyRevision": "search-users-" + "0123456789abcdef" * 2,
    "MemberReading": "reading-0123456789abcdef",
}


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.kind)
def test_kubectl_fits_100_columns(kind: Resource) -> None:
    reasons = max(
        (reason for condition in kind.conditions.values() for reason in condition.reasons), key=len, default=""
    )
    cells = [("Name", NAMES.get(kind.kind, "search-service"))]
    for column in (*kind.columns, Column("Age", "", "date")):
        if column.wide:
            continue
        usual = {"integer": "10000", "date": "7h59m"}.get(column.type)
        if usual is None and column.path.startswith(".status.conditions"):
            usual = reasons if column.path.endswith(".reason") else "Unknown"
        assert usual or column.path in CELLS, f"add {column.path} to CELLS, with the longest usual value"
        cells.append((column.name, usual or CELLS[column.path]))
    # kubectl separates columns by three blanks.
    assert sum(max(len(heading), len(cell)) for heading, cell in cells) + 3 * (len(cells) - 1) <= 100


def test_a_part_that_contradicts_itself_cannot_be_made() -> None:
    item = record("An item.", {"name": text("Its name.", longest=5)})
    with pytest.raises(ValueError, match="do not require their key name"):
        keyed("A list.", item, by="name", most=3)
    with pytest.raises(ValueError, match="requires \\['size'\\]"):
        record("An item.", {"name": text("Its name.", longest=5)}, required=("size",))


def test_a_benchmark_chooses_from_lists_and_numbers() -> None:
    """Whoever may create one gets nothing of theirs into a program that generates load but these."""
    free = []

    def look(schema: dict[str, Any], place: str) -> None:
        if schema["type"] == "object":
            for name, inner in schema["properties"].items():
                look(inner, f"{place}.{name}")
        elif schema["type"] == "array":
            look(schema["items"], place)
        elif schema["type"] == "string" and "enum" not in schema:
            free.append(place)
        else:
            assert schema["type"] == "string" or {"minimum", "maximum"} <= schema.keys(), place

    look(BENCHMARK.spec, "spec")
    assert free == ["spec.pipeline", "spec.thresholds"], "a DNS label, and expressions that admission has parsed"
