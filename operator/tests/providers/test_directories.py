# SPDX-License-Identifier: BSD-2-Clause
"""Directories of runs: private, deleted after the run, and cleaned up when a killed operator has left one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from shai_operator import __main__
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


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a directory count as a file system in memory, and another one as the disk."""
    for place in ("memory", "disk"):
        (tmp_path / place).mkdir(mode=0o700)
    monkeypatch.setattr(directories, "_IN_MEMORY", (tmp_path / "memory",))
    monkeypatch.setattr(directories, "_is_in_memory", Path.exists)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path / "memory"


def test_the_disk_is_used_only_without_a_file_system_in_memory(memory: Path) -> None:
    assert directories.base_directory(None).parent == memory
    shutil.rmtree(memory)
    assert directories.base_directory(None).parent == memory.parent / "disk"


def test_a_directory_of_another_user_brings_no_keys_to_the_disk(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    taken = memory / "shai-runs-123456"
    taken.mkdir(mode=0o700)
    with pytest.raises(directories.DirectoryError) as failure:
        directories.base_directory(None)
    assert f"{taken} belongs to user {me}; remove it, or set XDG_RUNTIME_DIR" in str(failure.value)
    assert list((memory.parent / "disk").iterdir()) == []


def test_the_users_own_directory_in_memory_comes_first(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "user"
    own.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own))
    assert directories.base_directory(None).parent == own
    own.chmod(0o755)
    assert directories.base_directory(None).parent == memory
    own.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    with suppress(directories.DirectoryError):
        directories.base_directory(None)
    assert not (own / "shai-runs-123456").exists()


def test_an_operator_without_a_private_directory_says_so_and_ends(
    memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = memory.parent / "disk" / f"shai-runs-{os.getuid()}"
    taken.mkdir(mode=0o755)
    assert __main__.main(["run"]) == 1
    assert capsys.readouterr().err == (
        f"shai_operator: no private directory can be made: {taken} is open to others (mode 755); remove it, or set "
        "TMPDIR to a directory of your own\n"
    )
