# SPDX-License-Identifier: BSD-2-Clause
"""Reads the files of a member's data directory, which the tasks of its pipeline may be able to write.

So nothing that a name leads to out of the directory is read, nothing that waits for somebody or never ends, and
nothing that does not fit into memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_MIB = 256
LONGEST_BYTES = LONGEST_MIB << 20
"""How long a file may be. The roles that copy files from members on other hosts have the same limit."""

_REMEDY = "make the corpus again (make demo does)"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a FIFO would wait for its writer."""
_LINKS = (errno.ELOOP, errno.ENOTDIR)


class DataFileError(LoadgenError):
    """A file of a data directory cannot be read; the text names the file, the cause and the remedy."""

    def __init__(self, directory: Path, name: str, cause: str, *, known: bool) -> None:
        """``known``: the name is not one that somebody chose, so that everybody may read it."""
        text = f"cannot read {directory / name}: {cause}; {_REMEDY}"
        super().__init__(text, public=f"cannot read {name} of the member's data: {cause}; {_REMEDY}" if known else "")


def read(directory: Path, name: str) -> str:
    """Return the text of a file whose name is known to everybody; DataFileError when it cannot be read."""
    with opened(directory, name, known=True) as file:
        try:
            content = file.read(LONGEST_BYTES + 1)
            if len(content) > LONGEST_BYTES:
                raise DataFileError(directory, name, f"it has more than {LONGEST_MIB} MiB", known=True)
            return content.decode()
        except UnicodeDecodeError as error:
            raise DataFileError(directory, name, f"it is no UTF-8 from byte {error.start} on", known=True) from error
        except OSError as error:
            raise DataFileError(directory, name, str(error.strerror), known=True) from error


@contextlib.contextmanager
def opened(directory: Path, name: str, *, known: bool = False) -> Iterator[BinaryIO]:
    """Open a file beneath a data directory; DataFileError unless it is a regular one that no link leads to."""
    try:
        descriptor = _open(directory, PurePath(name).parts)
    except OSError as error:
        cause = "it is, or is behind, a symbolic link or a file" if error.errno in _LINKS else str(error.strerror)
        raise DataFileError(directory, name, cause, known=known) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataFileError(directory, name, "it is not a regular file", known=known)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _open(directory: Path, parts: tuple[str, ...]) -> int:
    """Open a path, each of its directories in the one before, so that none can be replaced by a link meanwhile."""
    folder = os.open(directory, _FOLDER)
    for part in parts[:-1]:
        try:
            if part == os.pardir:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    try:
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
