# SPDX-License-Identifier: BSD-2-Clause
"""The files of the scenarios, run by the locust command as people run it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadgen.scenarios.definitions import SCENARIOS
from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE


def locust(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "locust", "-f", f"loadgen/scenarios/{name}.py", "--headless", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if not scenario.unfriending])
def test_scenarios_run(name: str, server: FakeSysE, data: Path) -> None:
    done = locust(name, "--host", f"http://127.0.0.1:{server.server_port}", "--data", str(data), "-u", "3", "-t", "2s")
    assert done.returncode == 0, done.stderr
    assert len(server.logins) >= 1


def test_without_a_service_it_says_so_in_one_line(data: Path) -> None:
    done = locust("spike", "--host", "http://127.0.0.1:9", "--data", str(data))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("locust: nothing answers at http://127.0.0.1:9: ")
    assert "Traceback" not in done.stderr
