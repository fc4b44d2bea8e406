# SPDX-License-Identifier: BSD-2-Clause
"""Makes seeds: the small disks that nuageinit and cloud-init look for, ISO 9660 with the label cidata.

Both read ISO 9660 and FAT. One form is enough, and hosts can make it, too: makefs(8) is part of FreeBSD.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from images.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL = "cidata"
_NO_TIME = (0, 0)


def write(files: Mapping[str, str], to: Path) -> None:
    """Write a seed with files; the same files make the same bytes. ImageError if that fails.

    The seed has a host key: only its owner may read it, and in it only root may read the files.
    """
    with tempfile.TemporaryDirectory(prefix="shai-seed-", dir=_parent(to)) as directory:
        content, made = Path(directory) / "content", Path(directory) / "seed.iso"
        content.mkdir()
        for name, text in files.items():
            (content / name).write_text(text, encoding="utf-8")
            os.utime(content / name, _NO_TIME)
        os.utime(content, _NO_TIME)
        _make(content, made)
        made.chmod(0o600)
        try:
            made.replace(to)
        except OSError as error:
            raise ImageError(f"{to} cannot be written: {error}; choose another file") from error


def _parent(to: Path) -> Path:
    """Return the directory of a file; the seed is made there, so that it takes the file's place in one step."""
    if not to.parent.is_dir() or not os.access(to.parent, os.W_OK):
        raise ImageError(f"{to} cannot be written: {to.parent} is no directory that you may write; choose another file")
    return to.parent


def _make(content: Path, made: Path) -> None:
    options = ["-quiet", "-volid", LABEL, "-rational-rock", "-file-mode", "0400", "-dir-mode", "0500", "-no-pad"]
    try:
        done = subprocess.run(
            ["xorriso", "-as", "mkisofs", *options, "--set_all_file_dates", "set_to_mtime", "-output", made, content],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"},
        )
    except FileNotFoundError as error:
        raise ImageError("xorriso is missing, so no seed can be made: install the package xorriso") from error
    if done.returncode != 0 or not made.is_file():
        raise ImageError(f"xorriso made no seed: {done.stderr.strip()[-400:]}; is there room in {made.parent.parent}?")
