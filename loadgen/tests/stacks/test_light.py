# SPDX-License-Identifier: BSD-2-Clause
"""The light pipeline, derived from the example."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loadgen.__main__ import main
from loadgen.datasets import crowd, population
from loadgen.driving.protocol import search_once
from loadgen.measuring.place import IMAGE, MANIFESTS
from loadgen.plan import BASELINE
from loadgen.stacks import launcher, light, manifests
from loadgen.tests.harness import ROOT
from loadgen.tests.light_stack import USERS, running
from loadgen.verifying import checks

EXAMPLE = ROOT / MANIFESTS
SHAI = ROOT / IMAGE / "bin" / "shai"


def test_the_fast_engine_replaces_what_needs_an_index() -> None:
    example = manifests.read(EXAMPLE)
    derived = light.derive(example, "syse")
    spec = manifests.find(derived, "syse")["spec"]
    assert spec["tasks"] == [light.ENGINE, light.FRONT_END, "interests", "support"]
    assert {conduit["name"] for conduit in spec["conduits"]}.isdisjoint({"index", "forward", "partial"})
    engine = manifests.find_task(derived, light.ENGINE)["spec"]
    assert engine["command"][0] == "$(SYSE)/syse-engine"
    assert not {"$(JAVA)", "--index"} & set(engine["command"])
    assert engine["runtimeName"] == "front-end"
    assert manifests.find_task(derived, light.FRONT_END) == manifests.find_task(example, light.FRONT_END)
    names = {entry["metadata"]["name"] for entry in derived if entry["kind"] == "Policy"}
    assert names == {entry["metadata"]["name"] for entry in example if entry["kind"] == "Policy"}
    assert "--index" in manifests.find_task(example, light.ENGINE)["spec"]["command"], "the example is as it was"


def test_the_fast_engine_is_as_slow_as_it_is_told_to_be() -> None:
    for cycles in (0, 900_000):
        derived = light.derive(manifests.read(EXAMPLE), "syse", cycles)
        command = manifests.find_task(derived, light.ENGINE)["spec"]["command"]
        assert command[command.index("--busy-cycles") + 1] == str(cycles)


def test_manifests_are_written_that_the_monitor_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["light", str(tmp_path / "out"), "--busy-cycles", "5"]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert manifests.read(written.parent) == light.derive(manifests.read(EXAMPLE), "syse", 5)
    checked = subprocess.run([SHAI, "policy", "check", written], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_options_go_to_the_front_end_of_a_variant_alone() -> None:
    documents = light.derive(manifests.read(EXAMPLE), "syse")
    listen = dict.fromkeys(("worker", "interests", "support"), ("127.0.0.1", 1))
    variants = [
        manifests.derive(documents, "syse", mode=BASELINE, listen=listen, options=variant.options)
        for variant in (launcher.FORKED, *launcher.TWINS)
    ]
    commands = [manifests.find_task(variant, light.FRONT_END)["spec"]["command"] for variant in variants]
    assert commands[0] == [*commands[1], "--single-session"]
    assert commands[1] == commands[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_a_broken_engine_leaks_without_enforcement_and_not_with_it() -> None:
    """The engine sends everybody's documents to the worker of one user."""
    name = "user00000"
    seen = {}
    for variant in (launcher.BROKEN_BASELINE, launcher.BROKEN):
        with running(variant) as (stack, data):
            person = population.load(data)[name]
            seen[variant.mode] = answer = search_once(stack.front_end, person, crowd.QUERY, checks.RESULTS)
            foreign = {found["owner"] for found in answer["results"] if found["visibility"] == "private"} - {name}
            if variant is launcher.BROKEN_BASELINE:
                assert len(foreign) == USERS - 1, "nothing leaked, so this proves nothing"
                continue
            assert foreign == set()
            assert {found["owner"] for found in answer["results"] if found["visibility"] == "private"} == {name}
            document = checks.Document("/corpus/private/user00001/1.txt", "")
            record = checks.await_record(lambda: stack.monitor.audit(["--denied"]), document)
            assert record["principal"] == name
            assert record["policy"] == 'private(owner: "user00001")'
    assert answer["withheld"] == len(seen["baseline"]["results"]) - len(answer["results"]) >= USERS - 1


def test_a_missing_task_is_named() -> None:
    with pytest.raises(manifests.ManifestError, match="no manifest of task worker"):
        manifests.find_task([], "worker")
