# SPDX-License-Identifier: BSD-2-Clause
"""Commands for a key-value store, in the store's own protocol (RESP)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SEED_COMMANDS = "profiles.resp"
"""The file in the data directory with the commands for a new key-value store."""


def encode(*words: str) -> bytes:
    """Encode one command."""
    texts = [word.encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


def write_seed_commands(directory: Path) -> int:
    """Write a command for every person's profile in a data directory; return the number of commands."""
    lines = (directory / "profiles.jsonl").read_text(encoding="utf-8").splitlines()
    with (directory / SEED_COMMANDS).open("wb") as file:
        for line in lines:
            file.write(encode("SET", f"profile:{json.loads(line)['user']}", line))
    return len(lines)
