# SPDX-License-Identifier: BSD-2-Clause
"""Writes what a Prometheus on this machine needs into a directory that may belong to its user.

The operator is often root, and the directory's owner is not. Whatever the owner puts there, nothing outside of it is
written: no link is followed, and each file is made anew under another name, then renamed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from shai_operator.control.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PUBLIC, _OWNERS, _GROUPS = 0o644, 0o600, 0o640
_FOLDERS = {"targets": 0o755, "tls": 0o750}
_PRIVATE = frozenset({"client.key"})
_ROOT = 0


class ScrapeDirectory:
    """The directory. Its methods block, and are called by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._owner: tuple[int, int] | None = None
        self._written: dict[str, tuple[bytes, os.stat_result]] = {}

    def check(self) -> None:
        """Raise SettingsError unless files can be written there."""
        try:
            with self._open() as directory:
                about = os.fstat(directory)
                if os.geteuid() not in (_ROOT, about.st_uid):
                    raise SettingsError(
                        f"{self._path} belongs to user {about.st_uid}, who could not read what the operator writes: "
                        "run the operator as that user or as root, or give another --scrape"
                    )
                self._owner = about.st_uid, about.st_gid
                for folder in _FOLDERS:
                    with self._folder(directory, folder) as opened:
                        _create(opened, ".check", b"", _OWNERS, self._owner)
                        os.unlink(".check", dir_fd=opened)
        except OSError as error:
            raise SettingsError(
                f"cannot write to {self._path}: {error}; make this directory, or give another --scrape"
            ) from error

    def write(self, folder: str, name: str, content: bytes) -> None:
        """Replace a file atomically, unless it still is what was written last; OSError when that fails."""
        key = f"{folder}/{name}"
        with self._open() as directory, self._folder(directory, folder) as opened:
            known, before = self._written.get(key, (None, None))
            if known == content and before is not None and _same(opened, name, before):
                return
            shared = os.fstat(directory).st_mode & stat.S_ISGID
            mode = (_GROUPS if shared else _OWNERS) if name in _PRIVATE else _PUBLIC
            temporary = f".{name}.new"
            written = _create(opened, temporary, content, mode, self._owner)
            os.rename(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
            self._written[key] = content, written

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        directory = os.open(self._path, _DIRECTORY)
        try:
            about = os.fstat(directory)
            if self._owner not in (None, (about.st_uid, about.st_gid)):
                raise PermissionError(f"{self._path} has another owner than when the operator started; restart it")
            yield directory
        finally:
            os.close(directory)

    @contextlib.contextmanager
    def _folder(self, directory: int, name: str) -> Iterator[int]:
        """Open a folder of the directory, and make it if it is missing."""
        about = os.fstat(directory)
        made = False
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory)
            made = True
        opened = os.open(name, _DIRECTORY, dir_fd=directory)
        try:
            if made:
                os.fchmod(opened, _FOLDERS[name] | (about.st_mode & stat.S_ISGID))
                _give(opened, (about.st_uid, about.st_gid))
            if os.fstat(opened).st_uid not in (about.st_uid, os.geteuid()):
                raise PermissionError(f"{self._path / name} belongs to another user than {self._path}; remove it")
            yield opened
        finally:
            os.close(opened)


def _create(folder: int, name: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> os.stat_result:
    """Make a new file, in place of what has its name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    with os.fdopen(os.open(name, _NEW_FILE, _OWNERS, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            _give(file.fileno(), owner)
        return os.fstat(file.fileno())


def _give(descriptor: int, owner: tuple[int, int]) -> None:
    if os.geteuid() == _ROOT:
        os.fchown(descriptor, *owner)


def _same(folder: int, name: str, before: os.stat_result) -> bool:
    """Whether a file is the one that was written, unchanged."""
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    # Renaming changes st_ctime.
    return (now.st_ino, now.st_dev, now.st_mtime_ns, now.st_size) == (
        before.st_ino, before.st_dev, before.st_mtime_ns, before.st_size
    )  # fmt: skip
