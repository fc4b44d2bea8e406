# SPDX-License-Identifier: BSD-2-Clause
"""Private directories of runs: on a file system in memory if there is one, and deleted after the run.

A directory is locked while its run lives. Directories that a killed operator has left behind are not
locked, and are deleted before the next run.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY = (Path("/dev/shm"), Path("/run"))  # noqa: S108 - the directories within are private
_TMPFS = "tmpfs"


class DirectoryError(OSError):
    """There is no private directory; the text names what is in the way, and the remedy."""


def base_directory(given: Path | None) -> Path:
    """Return the parent of runs' directories: in ``given``, else in a file system in memory.

    The disk is used only where there is none in memory: who made a directory there first would else have keys written
    to the disk. DirectoryError when there is no private one.
    """
    memory = [] if given else [*_runtime_directory(), *(path for path in _IN_MEMORY if _is_in_memory(path))]
    refused = []
    for candidate in memory or [given or Path(tempfile.gettempdir())]:
        base = candidate / f"shai-runs-{os.getuid()}"
        why = _refusal(base)
        if not why:
            return base
        refused.append(f"{base} {why}")
    remedy = "XDG_RUNTIME_DIR to a directory of your own in memory" if memory else "TMPDIR to a directory of your own"
    raise DirectoryError(f"no private directory can be made: {', '.join(refused)}; remove it, or set {remedy}")


def _refusal(base: Path) -> str:
    """Make a directory; say why it cannot be used. Another user may have made it first, to read the files in it."""
    try:
        with suppress(FileExistsError):
            base.mkdir(mode=0o700, parents=True)
        about = base.lstat()
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    if about.st_uid != os.getuid():
        return f"belongs to {_name_of(about.st_uid)}"
    if not stat.S_ISDIR(about.st_mode):
        return "is no directory"
    return f"is open to others (mode {about.st_mode & 0o777:o})" if about.st_mode & 0o077 else ""


def _name_of(user: int) -> str:
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def _runtime_directory() -> list[Path]:
    """Return the user's own directory in memory; after su or sudo the variable may name another user's."""
    path = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    with suppress(OSError):
        about = path.lstat()
        private = stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o077
        return [path] if path.is_absolute() and private and about.st_uid == os.getuid() else []
    return []


@contextmanager
def run_directory(base: Path) -> Iterator[Path]:
    """Make a private directory for one run and remove it afterwards; also remove those of killed operators."""
    with guard(base):
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
def guard(base: Path) -> Iterator[None]:
    """Let only one thread or process at a time create, clean up and look for what operators share."""
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
