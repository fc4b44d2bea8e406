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


LISTEN = {"worker": ("127.0.0.1", 9999), "interests": ("127.0.0.1", 9998), "support": ("127.0.0.1", 9997)}


def derived(**changes: Any) -> list[dict[str, Any]]:
    usual = {"mode": "shai", "listen": LISTEN}
    return manifests.derive(manifests.read(EXAMPLE), "syse", **{**usual, **changes})


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in documents}


def test_a_variant_differs_in_what_was_asked_and_in_nothing_else() -> None:
    example = manifests.read(EXAMPLE)
    variant = derived(mode="baseline", faults={"FAULT": "ignore-attributes", "SUPPORT_FAULT": "skip-entry"})
    spec = manifests.find(variant, "syse")["spec"]
    assert spec["mode"] == "baseline"
    assert manifests.variables({"spec": spec}) == {
        **manifests.variables(manifests.find(example, "syse")),
        "FAULT": "ignore-attributes",
        "SUPPORT_FAULT": "skip-entry",
    }
    assert {conduit["task"]: conduit["listen"] for conduit in spec["conduits"] if "listen" in conduit} == {
        "worker": "127.0.0.1:9999",
        "interests": "127.0.0.1:9998",
        "support": "127.0.0.1:9997",
    }
    spec |= {name: manifests.find(example, "syse")["spec"][name] for name in ("mode", "variables", "conduits")}
    assert by_name(variant) == by_name(example)
    assert by_name(manifests.read(EXAMPLE)) == by_name(example), "the original is not touched"


def test_each_task_that_serves_users_has_a_port_of_its_own() -> None:
    numbers = iter(range(5000, 6000))
    pipeline = manifests.find(manifests.read(EXAMPLE), "syse")
    found = manifests.places(pipeline, ("::1", 80), lambda: next(numbers))
    assert found == {"worker": ("::1", 80), "interests": ("::1", 5000), "support": ("::1", 5001)}
    variant = manifests.find(derived(listen=found), "syse")
    assert manifests.connections(variant)["support"]["listen"] == "[::1]:5001"


def test_facts_in_manifests_are_read() -> None:
    example = manifests.read(EXAMPLE)
    assert manifests.facts(example, "employees", "office") == [["erin", "us"], ["frank", "de"]]
    assert manifests.facts(example, "employees", "home") == manifests.facts(example, "population", "office") == []


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
        assert launched.serving == ("search", "worker", "interests", "support")


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
    derived = manifests.derive(example, "syse", mode="shai", listen=LISTEN)
    assert "service" not in manifests.connections(manifests.find(derived, "syse"))["worker"]
    assert manifests.connections(manifests.find(example, "syse"))["worker"]["service"] == "search.example.org:443"


def test_other_pipelines_stay_behind() -> None:
    other = {"kind": "Pipeline", "metadata": {"name": "other"}, "spec": {}}
    documents = manifests.derive([other, *manifests.read(EXAMPLE)], "syse", mode="shai", listen=LISTEN)
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
        manifests.derive(example, "syse", mode="shai", listen=LISTEN, faults={"FAULT": "ignore-attributes"})
