# SPDX-License-Identifier: BSD-2-Clause
"""The light pipeline, derived from the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.plan import BASELINE
from loadgen.stacks import launcher, light, manifests

EXAMPLE = Path(__file__).resolve().parents[3] / "crds" / "examples" / "syse"


def test_the_fast_engine_replaces_what_needs_an_index() -> None:
    example = manifests.read(EXAMPLE)
    derived = light.derive(example, "syse")
    spec = manifests.find(derived, "syse")["spec"]
    assert spec["tasks"] == [light.ENGINE, light.FRONT_END]
    assert {conduit["name"] for conduit in spec["conduits"]}.isdisjoint({"index", "forward", "partial"})
    engine = manifests.find_task(derived, light.ENGINE)["spec"]
    assert "dev.shai.syse.FastEngine" in engine["command"]
    assert "--index" not in engine["command"]
    assert manifests.find_task(derived, light.FRONT_END) == manifests.find_task(example, light.FRONT_END)
    names = {entry["metadata"]["name"] for entry in derived if entry["kind"] == "Policy"}
    assert names == {entry["metadata"]["name"] for entry in example if entry["kind"] == "Policy"}
    assert "--index" in manifests.find_task(example, light.ENGINE)["spec"]["command"], "the example is as it was"


def test_options_go_to_the_front_end_of_a_variant_alone() -> None:
    documents = light.derive(manifests.read(EXAMPLE), "syse")
    variants = [
        manifests.derive(documents, "syse", mode=BASELINE, listen="127.0.0.1:1", fault="none", options=variant.options)
        for variant in (launcher.FORKED, *launcher.TWINS)
    ]
    commands = [manifests.find_task(variant, light.FRONT_END)["spec"]["command"] for variant in variants]
    assert commands[0] == [*commands[1], "--single-session"]
    assert commands[1] == commands[2]


def test_a_missing_task_is_named() -> None:
    with pytest.raises(manifests.ManifestError, match="no manifest of task worker"):
        manifests.find_task([], "worker")
