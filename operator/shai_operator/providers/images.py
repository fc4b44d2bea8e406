# SPDX-License-Identifier: BSD-2-Clause
"""Images: directories on the operator's machine with all files that a member runs."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from threading import Lock

from shai_operator.providers.interface import Image, ImageMissingError

REQUIRED = ("bin/shai", "runtime/libshai.so")
"""The files that an image has to contain."""

_known: dict[Path, tuple[bytes, str]] = {}
"""For each image that was read: the sizes and times of its files, and its digest."""
_known_lock = Lock()


def read(images: Path, name: str) -> Image:
    """Read the image ``name`` from a directory of images; ImageMissingError when it is missing or no image.

    Reads every file, so call it in a thread; if no file has changed since, it reads none.
    """
    if not name or name.startswith(".") or "/" in name:
        raise ImageMissingError(f"image {name!r}: expected the name of a directory in {images}")
    path = (images / name).resolve()
    for required in REQUIRED:
        if not (path / required).is_file():
            raise ImageMissingError(
                f"image {name}: {path / required} is missing; build the image into {images / name}, "
                "or give the operator the directory that holds it (--images)"
            )
    files = sorted(_files(path, name))
    signature = _signature(path, files)
    with _known_lock:
        known = _known.get(path)
    if known is None or known[0] != signature:
        known = (signature, _digest(path, files))
        with _known_lock:
            _known[path] = known
    return Image(name, str(path), known[1])


def _files(path: Path, name: str) -> list[str]:
    found = []
    for directory, directories, files in os.walk(path):
        for entry in [*directories, *files]:
            whole = Path(directory, entry)
            mode = whole.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                raise ImageMissingError(f"image {name}: {whole} is neither a file nor a directory; take it out")
            found.append(str(whole.relative_to(path)))
    return found


def _signature(path: Path, files: list[str]) -> bytes:
    hashed = hashlib.sha256()
    for file in files:
        about = (path / file).lstat()
        hashed.update(f"{file}\0{about.st_ino} {about.st_mode} {about.st_size} {about.st_ctime_ns}\0".encode())
    return hashed.digest()


def _digest(path: Path, files: list[str]) -> str:
    hashed = hashlib.sha256()
    for file in files:
        whole = path / file
        mode = whole.lstat().st_mode
        hashed.update(f"{file}\0{stat.filemode(mode)}\0".encode())
        if stat.S_ISLNK(mode):
            hashed.update(str(whole.readlink()).encode())
        elif stat.S_ISREG(mode):
            with whole.open("rb") as content:
                hashed.update(hashlib.file_digest(content, "sha256").digest())
    return hashed.hexdigest()
