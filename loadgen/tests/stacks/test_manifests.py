# SPDX-License-Identifier: BSD-2-Clause
"""Variants of the example's manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadgen.stacks import light, manifests, twins
from loadgen.stacks.member import Member
from loadgen.stacks.supervisor import ProcessFailedError, Supervisor
from loadgen.tests.harness import ROOT

EXAMPLE = ROOT / "crds" / "examples" / "syse"


def derived(**changes: str) -> list[dict[str, Any]]:
    example = manifests.read(EXAMPLE)
    pipeline = manifests.find(example, "syse")
    listen = manifests.connection(pipeline)["listen"]
    usual = {"mode": pipeline["spec"]["mode"], "listen": listen, "fault": manifests.NO_FAULT}
    return manifests.derive(example, "syse", **{**usual, **changes})


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in documents}


def test_a_variant_differs_in_what_was_asked_and_in_nothing_else() -> None:
    example = manifests.read(EXAMPLE)
    assert by_name(derived()) == by_name(example)
    variant = derived(mode="baseline", listen="127.0.0.1:9999", fault="ignore-attributes")
    pipeline = manifests.find(variant, "syse")
    assert pipeline["spec"]["mode"] == "baseline"
    assert {"name": "FAULT", "value": "ignore-attributes"} in pipeline["spec"]["variables"]
    assert manifests.connection(pipeline)["listen"] == "127.0.0.1:9999"
    assert by_name(manifests.read(EXAMPLE)) == by_name(example), "the original is not touched"


def test_twins_start_the_tasks_that_their_pipeline_has(tmp_path: Path) -> None:
    example = light.derive(manifests.read(EXAMPLE), "syse")
    del manifests.find_task(example, "worker")["spec"]["run"]  # Always is the default
    nobody = Path("/nonexistent")
    member = Member("main-0", "syse", nobody, nobody, nobody, nobody)
    with (
        Supervisor() as supervisor,
        twins.launcher(
            member, example, place=tmp_path, logs=tmp_path, cores=frozenset({0}), supervisor=supervisor
        ) as launched,
    ):
        assert launched.serving == ("search", "worker")


def test_twins_may_fetch_what_their_member_may(tmp_path: Path) -> None:
    shai = tmp_path / "shai"
    shai.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$(dirname "$0")/flags"\nexit 1\n')
    shai.chmod(0o755)
    member = Member(
        "main-0",
        "syse",
        tmp_path,
        tmp_path,
        tmp_path,
        tmp_path,
        program=shai,
        sources=("https://facts.example", "unix:/a b"),
    )
    with (
        Supervisor() as supervisor,
        twins.launcher(
            member, manifests.read(EXAMPLE), place=tmp_path, logs=tmp_path, cores=frozenset({0}), supervisor=supervisor
        ) as launched,
        pytest.raises(ProcessFailedError),
    ):
        launched.start_monitor("twin")
    flags = (tmp_path / "flags").read_text().splitlines()
    assert [flag for flag in flags if "allow-source" in flag] == [
        "--allow-source=https://facts.example",
        "--allow-source=unix:/a b",
    ]


def test_a_variant_has_no_service_but_its_address() -> None:
    example = manifests.read(EXAMPLE)
    web = next(c for c in manifests.find(example, "syse")["spec"]["conduits"] if c["kind"] == "connection")
    web["service"] = "search.example.org:443"
    derived = manifests.derive(example, "syse", mode="shai", listen="127.0.0.1:9999", fault=manifests.NO_FAULT)
    assert "service" not in manifests.connection(manifests.find(derived, "syse"))
    assert manifests.connection(manifests.find(example, "syse"))["service"] == "search.example.org:443"


def test_other_pipelines_stay_behind() -> None:
    other = {"kind": "Pipeline", "metadata": {"name": "other"}, "spec": {}}
    documents = manifests.derive(
        [other, *manifests.read(EXAMPLE)], "syse", mode="shai", listen="127.0.0.1:1", fault=manifests.NO_FAULT
    )
    assert [entry["metadata"]["name"] for entry in documents if entry["kind"] == "Pipeline"] == ["syse"]


def test_manifests_survive_their_file(tmp_path: Path) -> None:
    path = manifests.write(tmp_path / "new", derived())
    assert by_name(manifests.read(path.parent)) == by_name(derived())


def test_what_is_not_the_monitors_is_left_out() -> None:
    assert {entry["kind"] for entry in manifests.read(EXAMPLE)} == {"Policy", "FactSource", "Task", "Pipeline"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "bundle.yaml"),
        ("a: 2026-99-99", "bundle.yaml"),
        pytest.param("[" * 20_000, "bundle.yaml", id="deep"),
        ("kind: Kustomization", "no manifests"),
        ("", "no manifests"),
    ],
)
def test_something_else_than_manifests_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bundle.yaml").write_text(text)
    with pytest.raises(manifests.ManifestError, match=message):
        manifests.read(tmp_path)


def test_a_pipeline_that_is_not_there_or_cannot_be_broken_is_named() -> None:
    example = manifests.read(EXAMPLE)
    with pytest.raises(manifests.ManifestError, match="no manifest of pipeline other; there are syse"):
        manifests.find(example, "other")
    pipeline = manifests.find(example, "syse")
    pipeline["spec"]["variables"] = []
    with pytest.raises(manifests.ManifestError, match="no variable FAULT"):
        manifests.derive(example, "syse", mode="shai", listen="", fault="ignore-attributes")
