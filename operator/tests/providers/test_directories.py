# SPDX-License-Identifier: BSD-2-Clause
"""Directories of runs: private, deleted after the run, and cleaned up when a killed operator has left one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shai_operator.providers import directories

HOLD = """
import sys; from pathlib import Path
from shai_operator.providers import directories
with directories.run_directory(Path(sys.argv[1])) as directory:
    print(directory, flush=True)
    sys.stdin.read()
"""


def test_private_and_gone_afterwards(tmp_path: Path) -> None:
    base = directories.base_directory(tmp_path)
    with directories.run_directory(base) as directory:
        directories.write_private(directory / "key", "secret")
        assert directory.stat().st_mode & 0o777 == 0o700
        assert (directory / "key").stat().st_mode & 0o777 == 0o600
        assert base.stat().st_mode & 0o777 == 0o700
    assert list(base.iterdir()) == []


def test_what_a_killed_operator_left_is_swept_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    base = directories.base_directory(tmp_path)
    command = [sys.executable, "-c", HOLD, str(base)]
    environment = {**os.environ, "PYTHONPATH": str(Path(directories.__file__).parents[2])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        assert left.parent == base
        with directories.run_directory(base):
            assert left.exists()
        other.kill()
        other.wait()
        assert left.exists()
    with directories.run_directory(base):
        assert not left.exists()


def test_a_name_that_somebody_else_took_first_is_not_used(tmp_path: Path) -> None:
    base = directories.base_directory(tmp_path)
    base.chmod(0o755)
    with pytest.raises(OSError, match="no private directory"):
        directories.base_directory(tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    base = directories.base_directory(tmp_path)
    base.rename(tmp_path / "elsewhere")
    base.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="no private directory"):
        directories.base_directory(tmp_path)
