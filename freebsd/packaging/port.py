# SPDX-License-Identifier: BSD-2-Clause
"""Reads a port: its variables, its texts, and the list of what it installs."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MAKE = ("bmake", "-r", "-m", str(Path(__file__).resolve().parent / "mk"))
"""FreeBSD's make, with stand-ins for the ports' framework."""
_DIRECTORY = re.compile(r"@dir(?:\((\w+),(\w+),([0-7]{3,4})\))? (\S+)")


class PortError(Exception):
    """A port has something that a package cannot be made from; the message names file and remedy."""


@dataclass(frozen=True)
class Directory:
    """A directory that belongs to a package."""

    path: str
    owner: str
    group: str
    mode: int


@dataclass(frozen=True)
class Contents:
    """What a package has: absolute paths, sorted. `configuration` are those files whose changes are kept."""

    files: tuple[str, ...]
    configuration: tuple[str, ...]
    directories: tuple[Directory, ...]


@dataclass(frozen=True)
class Port:
    """A port, as far as a package of it needs it."""

    folder: Path
    name: str
    version: str
    origin: str
    comment: str
    maintainer: str
    www: str
    prefix: str
    categories: tuple[str, ...]
    licenses: tuple[str, ...]
    rc_scripts: tuple[str, ...]
    description: str
    message: str
    contents: Contents


def read(folder: Path) -> Port:
    """Return the port in a folder. Raises PortError, and CalledProcessError if its Makefile is wrong."""
    values = variables(
        folder,
        *("PKGBASE", "PORTVERSION", "PKGORIGIN", "COMMENT", "MAINTAINER", "WWW", "PREFIX"),
        *("CATEGORIES", "LICENSE", "USE_RC_SUBR"),
    )
    name, version, origin, comment, maintainer, www, prefix, categories, licenses, rc_scripts = values
    return Port(
        folder=folder, name=name, version=version, origin=origin, comment=comment, maintainer=maintainer, www=www,
        prefix=prefix, categories=tuple(categories.split()), licenses=tuple(licenses.split()),
        rc_scripts=tuple(rc_scripts.split()), description=(folder / "pkg-descr").read_text(),
        message=(folder / "pkg-message").read_text(), contents=listed(folder / "pkg-plist", prefix),
    )  # fmt: skip


def variables(folder: Path, *names: str) -> list[str]:
    """Return the values of make's variables, by the make that FreeBSD has."""
    words = [word for name in names for word in ("-V", "${" + name + "}")]
    printed = subprocess.run(
        [*MAKE, *words], cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    return printed.stdout.splitlines()


def environment() -> dict[str, str]:
    """Return the environment for MAKE: GNU make hands its flags on, which this make does not know."""
    return {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS"}}


def listed(plist: Path, prefix: str) -> Contents:
    """Return what a list of contents (pkg-plist) names.

    Of the keywords it knows @config and @dir. Raises PortError for another one.
    """
    files, configuration, directories = set(), set(), set()
    for line in plist.read_text().splitlines():
        if found := _DIRECTORY.fullmatch(line):
            owner, group, mode, path = found.groups()
            directories.add((_absolute(prefix, path), owner or "root", group or "wheel", int(mode or "755", 8)))
            continue
        kind, _, path = line.rpartition(" ")
        if kind not in {"", "@config"}:
            raise PortError(f"{plist}: {line!r} is not known; expected a path, @config PATH or @dir PATH")
        files.add(_absolute(prefix, path))
        if kind:
            configuration.add(_absolute(prefix, path))
    return Contents(
        tuple(sorted(files)), tuple(sorted(configuration)), tuple(Directory(*one) for one in sorted(directories))
    )


def _absolute(prefix: str, path: str) -> str:
    absolute = PurePosixPath(prefix, path)
    if ".." in absolute.parts:
        raise PortError(f"{path}: a package's file cannot be named with ..")
    return str(absolute)
