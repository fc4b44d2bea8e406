# SPDX-License-Identifier: BSD-2-Clause
"""Writes a package: manifests, then files with absolute names, in a compressed archive."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from typing import TYPE_CHECKING

from freebsd.packaging import manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from freebsd.packaging.port import Port


def write(port: Port, machine: str, files: Sequence[manifest.File], time: int, path: Path) -> None:
    """Write a package in one step; `time` is that of all its files, in seconds since 1970.

    The same arguments make the same bytes, with the same version of zstd.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        # Readers of repositories look at the first manifest alone, installers at the second.
        for name, made in (
            ("+COMPACT_MANIFEST", manifest.compact(port, machine, files)),
            ("+MANIFEST", manifest.full(port, machine, files)),
        ):
            text = json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()
            _add(archive, _entry(name, 0o644, time), text)
        for file in files:
            _add(archive, _entry(file.path, file.mode, time), file.content)
        for one in port.contents.directories:
            entry = _entry(one.path, one.mode, time, one.owner, one.group)
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".new")
    # One thread: with several, the result depends on their number.
    subprocess.run(
        ["zstd", "--quiet", "--force", "--single-thread", "-12", "-", "-o", str(unfinished)],
        input=content.getbuffer(), check=True,
    )  # fmt: skip
    unfinished.replace(path)


def _entry(name: str, mode: int, time: int, owner: str = "root", group: str = "wheel") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime, entry.uname, entry.gname = mode, time, owner, group
    return entry


def _add(archive: tarfile.TarFile, entry: tarfile.TarInfo, content: bytes) -> None:
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
