# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/setup.sh leaves behind."""

from __future__ import annotations

import os
import subprocess
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
