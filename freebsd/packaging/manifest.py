# SPDX-License-Identifier: BSD-2-Clause
"""The manifests of a package, as pkg(8) reads them. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freebsd.packaging.port import Port

_ARCHITECTURES = {"x86_64": ("amd64", "x86:64"), "aarch64": ("aarch64", "aarch64:64")}
"""What FreeBSD calls a machine, in the field abi and in arch, its older form."""
_OLDEST = 1_400_000
"""The first version of the kernel (__FreeBSD_version) for which the package is: FreeBSD 14.0."""


@dataclass(frozen=True)
class File:
    """A file of a package; all belong to root and wheel."""

    path: str
    content: bytes
    mode: int


def compact(port: Port, machine: str, files: Sequence[File]) -> dict[str, object]:
    """Return what a repository's catalogue has of a package."""
    abi, arch = _ARCHITECTURES[machine]
    return {
        "name": port.name,
        "origin": port.origin,
        "version": port.version,
        "comment": port.comment,
        "maintainer": port.maintainer,
        "www": port.www,
        "abi": f"FreeBSD:*:{abi}",
        "arch": f"freebsd:*:{arch}",
        "prefix": port.prefix,
        "flatsize": sum(len(file.content) for file in files),
        "licenselogic": "single",
        "licenses": list(port.licenses),
        "desc": _encoded(port.description.rstrip("\n")),
        "categories": list(port.categories),
        "annotations": {"FreeBSD_version": str(_OLDEST)},
        "messages": [{"message": port.message.rstrip("\n"), "type": "install"}],
    }


def full(port: Port, machine: str, files: Sequence[File]) -> dict[str, object]:
    """Return the manifest, with the checksum of every file."""
    return compact(port, machine, files) | {
        "files": {_encoded(file.path): {"sum": _checksum(file.content)} | _access(file.mode) for file in files},
        "config": [_encoded(path) for path in port.contents.configuration],
        "directories": {
            _encoded(one.path): _access(one.mode, one.owner, one.group) for one in port.contents.directories
        },
    }


def _encoded(text: str) -> str:
    """Return a text as pkg(8) writes it: what is not ASCII, and the per cent sign, in hexadecimal digits."""
    return quote(text, safe="".join(chr(code) for code in range(128) if chr(code) != "%"))


def _checksum(content: bytes) -> str:
    """Return a checksum; 1 stands for SHA-256."""
    return "1$" + hashlib.sha256(content).hexdigest()


def _access(mode: int, owner: str = "root", group: str = "wheel") -> dict[str, str]:
    return {"uname": owner, "gname": group, "perm": f"{mode:04o}"}
