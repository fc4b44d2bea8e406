# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/setup.sh leaves behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _place_of_loadgen(checkout: Path) -> str:
    words = [str(checkout / ".venv" / "bin" / "python"), "-c", "import loadgen; print(loadgen.__file__)"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_environment_shared_by_a_link_finds_the_packages_of_each_checkout(tmp_path: Path) -> None:
    module = tmp_path / "loadgen" / "__init__.py"
    module.parent.mkdir()
    module.touch()
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    assert _place_of_loadgen(tmp_path) == str(module)
    assert _place_of_loadgen(ROOT) == str(ROOT / "loadgen" / "__init__.py")


def _copy_setup(checkout: Path) -> None:
    for name in ("scripts/setup.sh", "requirements.lock", "monitor/go.mod", "devcluster/go.mod"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)


def test_a_shared_environment_is_not_emptied_for_another_lock(tmp_path: Path) -> None:
    checkout, shared = tmp_path / "checkout", tmp_path / "shared"
    _copy_setup(checkout)
    venv.create(shared)
    (shared / ".lock.sha256").write_text(f"{'0' * 64}  requirements.lock\n")
    (shared / "package").touch()
    (checkout / ".venv").symlink_to(shared)
    # Without packages to fetch a failure empties the environment quickly.
    environment = {**os.environ, "PIP_NO_INDEX": "1"}
    words = [str(checkout / "scripts" / "setup.sh")]
    refused = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert ".venv is a link to an environment that is older than requirements.lock" in refused.stderr
    assert (shared / "package").exists()


def test_an_environment_that_does_not_find_its_checkout_is_noticed_and_mended(tmp_path: Path) -> None:
    _copy_setup(tmp_path)
    (tmp_path / "loadgen").mkdir()
    (tmp_path / "loadgen" / "__init__.py").touch()
    venv.create(tmp_path / ".venv")
    lock = hashlib.sha256((tmp_path / "requirements.lock").read_bytes()).hexdigest()
    (tmp_path / ".venv" / ".lock.sha256").write_text(f"{lock}  requirements.lock\n")

    def setup(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [str(tmp_path / "scripts" / "setup.sh"), *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    missing = setup("--check")
    assert missing.returncode == 1, missing.stdout
    assert "does not find this checkout: run scripts/setup.sh" in missing.stderr
    assert setup().returncode == 0
    assert setup("--check").returncode == 0
    assert _place_of_loadgen(tmp_path) == str(tmp_path / "loadgen" / "__init__.py")
