# SPDX-License-Identifier: BSD-2-Clause
"""Loads the corpus generator's profiles into the key-value store: ``profile:<user>``."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BATCH = 500
_TIMEOUT_SECONDS = 30.0


class StoreError(Exception):
    """The key-value store refused or lost a profile."""


def load(socket_path: Path, profiles: Path) -> int:
    """Write every line of ``profiles`` (JSON with "user") under its user; the number written."""
    lines = profiles.read_text(encoding="utf-8").splitlines()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        connection.connect(str(socket_path))
        with connection.makefile("rb") as answers:
            for start in range(0, len(lines), _BATCH):
                batch = lines[start : start + _BATCH]
                connection.sendall(b"".join(_set(f"profile:{json.loads(line)['user']}", line) for line in batch))
                for line in batch:
                    answer = answers.readline()
                    if answer != b"+OK\r\n":
                        raise StoreError(f"SET profile of {line[:40]!r}: expected OK, got {answer!r}")
    return len(lines)


def _set(key: str, value: str) -> bytes:
    words = (b"SET", key.encode(), value.encode())
    return b"*3\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
