# SPDX-License-Identifier: BSD-2-Clause
"""Reads descriptions of images, and records checksums in them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from images import schema
from images.errors import ImageError, UnpinnedError

if TYPE_CHECKING:
    from collections.abc import Mapping

Description = dict[str, Any]

FOLDER = Path(__file__).parent
_SHA512 = re.compile(r"[0-9a-f]{128}")
_BEFORE_CHECKSUM = re.compile(r"(?:^# No checksum is recorded yet.*\n)?^checksum:.*\n(?:^[ ].*\n)*", re.MULTILINE)


class _Texts(yaml.SafeLoader):
    """Leaves dates as texts, as JSON has them."""


_Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all descriptions, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read(name: str, folder: Path = FOLDER) -> Description:
    """Read the description with a name; ImageError if there is none, or if it is not sound."""
    if not schema.NAME.fullmatch(name):
        raise ImageError(f"image {name!r}: that is no name of a description; choose one of {', '.join(names(folder))}")
    path = folder / f"{name}.yaml"
    try:
        description = yaml.load(path.read_text(encoding="utf-8"), Loader=_Texts)  # noqa: S506 - a SafeLoader
    except FileNotFoundError as error:
        raise ImageError(
            f"image {name}: {folder} has no description of that name; choose one of {', '.join(names(folder))}, "
            "or add a file"
        ) from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ImageError(f"image {name}: {path} cannot be read: {error}; mend the file") from error
    if found := schema.problems(name, description):
        raise ImageError(f"image {name}: {path} is not sound: {'; '.join(found)}; docs/images.md describes the fields")
    assert isinstance(description, dict)  # noqa: S101 - the schema says so
    return description


def pin(name: str, description: Mapping[str, Any], given: str = "") -> str:
    """Return the SHA-512 that the image has to have: the one that a pool gives, or the recorded one.

    UnpinnedError if there is neither; ImageError if what a pool gives is no SHA-512.
    """
    if given and not _SHA512.fullmatch(given):
        raise ImageError(f"image {name}: checksum {given!r} is no SHA-512; expected 128 small hexadecimal digits")
    pinned: str = given or description["checksum"].get("value", "")
    if not pinned:
        raise UnpinnedError(
            f"image {name}: no checksum is recorded, so nothing could tell the image from another one; record it with "
            f"`python -m images record {name}`, or give the pool spec.virtualMachine.checksum"
        )
    return pinned


def url(description: Mapping[str, Any], mirror: str = "") -> str:
    """Return where the image is, on a mirror or on the first of the description's own.

    ImageError if the mirror is no URL of a server, or has a user name and password, which would be in every log.
    """
    base = mirror or description["mirrors"][0]
    if not _is_mirror(base):
        raise ImageError(f"mirror {base!r}: expected a URL such as https://mirror.example.org/freebsd")
    return f"{base.rstrip('/')}/{description['path']}"


def _is_mirror(base: str) -> bool:
    try:
        parts = urlsplit(base)
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
    )


def record(name: str, value: str, recorded_at: str, verified_by: str, folder: Path = FOLDER) -> Path:
    """Write the checksum of an image into its description; ImageError if another one is recorded already."""
    description = read(name, folder)
    known = description["checksum"].get("value")
    if known and known != value:
        raise ImageError(
            f"image {name}: {known[:12]}… is recorded, and this is {value[:12]}…: a release's image does not change; "
            "find out who changed it, and take the recorded checksum out by hand if the new one is right"
        )
    path = folder / f"{name}.yaml"
    entry = {"algorithm": "sha512", "value": value, "recordedAt": recorded_at, "verifiedBy": verified_by}
    if found := schema.problems(name, {**description, "checksum": entry}):
        raise ImageError(f"image {name}: the checksum cannot be recorded: {'; '.join(found)}")
    block = yaml.safe_dump({"checksum": entry}, sort_keys=False, width=200, default_style=None)
    text, count = _BEFORE_CHECKSUM.subn(lambda _: block, path.read_text(encoding="utf-8"), count=1)
    if count != 1:
        raise ImageError(
            f"image {name}: {path} has no line that begins with checksum:; add `checksum: {{algorithm: sha512}}`"
        )
    _replace(path, text)
    return path


def _replace(path: Path, text: str) -> None:
    """Put a file in place of another one in one step, so that nobody reads half of it."""
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
