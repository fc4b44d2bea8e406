# SPDX-License-Identifier: BSD-2-Clause
"""Prometheus' rules and its configuration, checked by Prometheus' own program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

RULES = Path(__file__).resolve().parents[1] / "rules"
FILES = (RULES / "recording.yml", RULES / "alerts.yml")


def promtool(*arguments: str | Path) -> None:
    """Run promtool; fail with what it says."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_valid() -> None:
    promtool("check", "rules", *FILES)


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    for folder in ("rules", "targets", "tls"):
        (tmp_path / folder).mkdir()
    for name in ("ca.pem", "client.pem", "client.key"):
        (tmp_path / "tls" / name).touch()
    for file in FILES:
        shutil.copy(file, tmp_path / "rules")
    shutil.copy(RULES / "prometheus.yml", tmp_path)
    promtool("check", "config", tmp_path / "prometheus.yml")
