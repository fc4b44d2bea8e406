# SPDX-License-Identifier: BSD-2-Clause
"""The schema of a description, and what a schema cannot say. Pure."""

from __future__ import annotations

import re
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]  # comes without types

NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
"""Names of descriptions; they are names of files, and parts of names on hosts."""

_URL = {"type": "string", "pattern": r"^https://[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]+)?$", "maxLength": 1024}
_HEX = r"^[0-9a-f]{128}$"
_DATE = {"type": "string", "format": "date"}

_CHECKSUM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["algorithm"],
    "properties": {
        "algorithm": {"const": "sha512"},
        "value": {"type": "string", "pattern": _HEX},
        "recordedAt": _DATE,
        "verifiedBy": {"type": "string", "pattern": r"^[\x20-\x7e]+$", "maxLength": 256},
    },
    "dependentRequired": {
        "value": ["recordedAt", "verifiedBy"],
        "recordedAt": ["value"],
        "verifiedBy": ["value"],
    },
}

DESCRIPTION: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": [
        "system",
        "release",
        "architecture",
        "filesystem",
        "format",
        "compression",
        "mirrors",
        "path",
        "published",
        "checksum",
        "firstBoot",
    ],
    "properties": {
        "system": {"enum": ["freebsd", "debian"]},
        "release": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
        "architecture": {"enum": ["amd64", "arm64"]},
        "filesystem": {"enum": ["ufs", "zfs", "ext4"]},
        "supportedUntil": _DATE,
        "format": {"const": "raw"},
        "compression": {"enum": ["none", "xz"]},
        "mirrors": {"type": "array", "minItems": 1, "maxItems": 8, "uniqueItems": True, "items": _URL},
        "path": {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", "maxLength": 512},
        "published": {
            "type": "object",
            "additionalProperties": False,
            "required": ["url", "signature"],
            "properties": {"url": _URL, "signature": {"enum": ["clear", "detached", "none"]}},
        },
        "checksum": _CHECKSUM,
        "firstBoot": {"enum": ["nuageinit", "cloud-init"]},
        "golden": {
            "type": "object",
            "additionalProperties": False,
            "required": ["version", "base", "baseChecksum", "contents", "snapshot"],
            "properties": {
                "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
                "base": {"type": "string", "pattern": f"^{NAME.pattern}$"},
                "baseChecksum": {"type": "string", "pattern": _HEX},
                "contents": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 256,
                    "uniqueItems": True,
                    "items": {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._+,-]*$", "maxLength": 128},
                },
                "snapshot": {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", "maxLength": 64},
            },
        },
    },
}
"""What a file of this folder has to be. `golden` says how an image was made that was not published by a project."""

_VALIDATOR = Draft202012Validator(DESCRIPTION, format_checker=FormatChecker(["date"]))
_FILESYSTEMS = {"freebsd": ("ufs", "zfs"), "debian": ("ext4",)}
_FIRST_BOOT = {"freebsd": "nuageinit", "debian": "cloud-init"}


def problems(name: str, description: object) -> list[str]:
    """Return what is wrong with a description, each with its place; nothing if it is sound."""
    found = [
        f"{'.'.join(str(part) for part in error.absolute_path) or 'the file'}: {error.message}"
        for error in sorted(_VALIDATOR.iter_errors(description), key=lambda error: list(map(str, error.absolute_path)))
    ]
    if not NAME.fullmatch(name):
        found.insert(0, f"{name!r} is no name: expected small letters, digits, dots and hyphens, at most 63")
    if found or not isinstance(description, dict):
        return found
    return _contradictions(name, description)


def _contradictions(name: str, description: dict[str, Any]) -> list[str]:
    system, release = description["system"], description["release"]
    expected = "-".join((system, release, description["architecture"]))
    found = []
    if name != expected and not name.startswith(f"{expected}-"):
        found.append(f"the file is named {name}, but it describes {expected}")
    if any(part in {"", ".", ".."} for part in description["path"].split("/")):
        found.append(f"path: {description['path']} has an empty segment, or a segment . or ..")
    if description["filesystem"] not in _FILESYSTEMS[system]:
        found.append(f"filesystem: {system} has no image on {description['filesystem']}")
    if description["firstBoot"] != _FIRST_BOOT[system]:
        found.append(f"firstBoot: {system} boots with {_FIRST_BOOT[system]}")
    if (description["compression"] == "xz") != description["path"].endswith(".xz"):
        found.append(f"compression: {description['compression']} does not fit the path's ending")
    return found
