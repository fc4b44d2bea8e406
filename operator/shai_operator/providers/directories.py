# SPDX-License-Identifier: BSD-2-Clause
"""Private directories of runs: on a file system in memory if there is one, and deleted after the run.

A directory is locked while its run lives. Directories that a killed operator has left behind are not
locked, and are deleted before the next run.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY = (Path("/dev/shm"), Path("/run"))  # noqa: S108 - the directories within are private
_TMPFS = "tmpfs"


def base_directory(given: Path | None) -> Path:
    """Return the parent of runs' directories: ``given``, else a file system in memory, else the temporary one."""
    candidates = (
        [given] if given else [*(path for path in _IN_MEMORY if _is_in_memory(path)), Path(tempfile.gettempdir())]
    )
    for candidate in candidates:
        base = candidate / f"shai-runs-{os.getuid()}"
        with suppress(OSError):
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = base.lstat()
            # Another user may have created the directory first, to read the files in it.
            if base.is_dir() and not base.is_symlink() and about.st_uid == os.getuid() and not about.st_mode & 0o077:
                return base
    raise OSError(f"no private directory can be made in {' or '.join(map(str, candidates))}: make one writable")


@contextmanager
def run_directory(base: Path) -> Iterator[Path]:
    """Make a private directory for one run and remove it afterwards; also remove those of killed operators."""
    with _guard(base):
        _sweep(base)
        directory = Path(tempfile.mkdtemp(prefix="run-", dir=base))
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield directory
    finally:
        discard(directory)
        os.close(lock)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read at any time."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def discard(directory: Path) -> None:
    """Remove a run's directory with its content."""
    shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _guard(base: Path) -> Iterator[None]:
    """Let only one thread or process at a time create and clean up directories."""
    descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(base: Path) -> None:
    for left in base.glob("run-*"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                discard(left)
            finally:
                os.close(descriptor)


def _is_in_memory(path: Path) -> bool:
    """Whether a directory is the root of a writable tmpfs."""
    if not os.access(path, os.W_OK):
        return False
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return any(fields[1] == str(path) and fields[2] == _TMPFS for fields in map(str.split, mounts))
