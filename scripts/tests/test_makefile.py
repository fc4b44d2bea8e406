# SPDX-License-Identifier: BSD-2-Clause
"""The top Makefile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"


def scripts(folder: Path) -> Path:
    """Put scripts into ``folder`` that leave a mark in place of the suites, and return the mark's path."""
    mark = folder / "suites-ran"
    (folder / "scripts").mkdir()
    for name in ("suites.sh", "step.sh", "image.sh", "maven.sh", "devcluster.sh", "cloud-init-schema.sh"):
        script = folder / "scripts" / name
        script.write_text(f"#!/bin/sh\ntouch {mark}\n" if name == "suites.sh" else "#!/bin/sh\n")
        script.chmod(0o755)
    # That of packages which are there:
    locked = folder / "dashboards" / "web" / "package-lock.json"
    installed = locked.parent / "node_modules" / ".package-lock.json"
    installed.parent.mkdir(parents=True)
    locked.touch()
    installed.touch()
    return mark


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--file", str(MAKEFILE), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["test", "check"])
def test_a_dry_run_shows_the_suites_and_runs_none(tmp_path: Path, target: str) -> None:
    mark = scripts(tmp_path)
    done = make(tmp_path, "--dry-run", target)
    assert done.returncode == 0, done.stderr
    assert f"scripts/suites.sh {target}" in done.stdout
    assert not mark.exists()


def test_without_it_the_suites_run(tmp_path: Path) -> None:
    mark = scripts(tmp_path)
    done = make(tmp_path, "check")
    assert done.returncode == 0, done.stderr
    assert mark.exists()
