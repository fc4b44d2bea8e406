# SPDX-License-Identifier: BSD-2-Clause
"""The verification of a running member, with stand-ins for monitors and Sys-E."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from loadgen.tests.serving_member import ServingMember


def show(serving: ServingMember) -> subprocess.CompletedProcess[str]:
    words = ["--member", serving.describe(), "--logs", serving.root / "logs", "--json", serving.root / "found.json"]
    return subprocess.run(
        [sys.executable, "-m", "loadgen", "verify", *map(str, words)],
        cwd=ROOT,
        env=serving.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_leaks_happen_without_enforcement_and_not_with_it(member: ServingMember) -> None:
    done = show(member)
    assert done.returncode == 0, done.stderr
    assert "as alice: 1 result, 0 of them private to bob" in done.stdout
    assert "as bob: 2 results, 1 of them private to bob" in done.stdout
    assert "mode baseline: bob's document leaked to alice" in done.stdout
    assert "refused, by policy private(bob)" in done.stdout
    found = json.loads((member.root / "found.json").read_text())
    assert (found["leak"]["baseline"]["leaked"], found["leak"]["shai"]["leaked"]) == (True, False)
    assert member.mode() == "shai"
    assert not (member.root / ".benchmark").exists()


def test_a_member_that_leaks_is_a_failure(member: ServingMember) -> None:
    bundle = member.root / "manifests" / "bundle.yaml"
    member.monitor.call("task", "stop", "syse", "worker")
    leaky = (
        bundle.read_text().replace("mode: shai", "mode: baseline").replace("value: none", "value: ignore-attributes")
    )
    (member.root / "leaky.txt").write_text(leaky)
    member.monitor.call("apply", "-f", str(member.root / "leaky.txt"))
    member.monitor.call("task", "start", "syse", "worker", "--wait")
    member.note_own()
    done = show(member)
    assert done.returncode == 1
    assert "alice was shown bob's private document" in done.stderr
