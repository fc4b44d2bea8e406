# SPDX-License-Identifier: BSD-2-Clause
"""The demo's key-value stores: a confined one, and an open one for mode baseline.

In the confined store nobody may do anything until the monitor lets them; its
configuration and the administrator's secrets come from ``shai keyvalue configure``. Mode
baseline enforces nothing, so its tasks connect to a store of their own that is as plain
as Redis comes.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path

_BATCH = 500
_TIMEOUT_SECONDS = 30.0


class StoreError(Exception):
    """A key-value store refused or lost something."""


@dataclass(frozen=True)
class Store:
    """A store: its socket, how to start it, and how to log in (None: no login)."""

    name: str
    socket: Path
    command: list[str]
    login: tuple[str, str, str] | None = None


def open_store(directory: Path) -> Store:
    """Describe a plain store in a private directory."""
    path = directory / "open.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
    return Store("open key-value store", path, [*command, "--save", "", "--appendonly", "no", "--dir", str(directory)])


def confined_store(files: dict[str, str], secrets: str) -> Store:
    """Describe the store that ``shai keyvalue configure`` made ``files`` for; ``secrets`` is the secrets' text."""
    try:
        found = json.loads(secrets)
        login = (found["AuthCommand"], found["Administrator"], found["Password"])
    except (KeyError, ValueError) as error:
        raise StoreError(f"{files['secrets']}: not the secrets of a key-value store: {error}") from error
    return Store("confined key-value store", Path(files["socket"]), ["redis-server", files["configuration"]], login)


def load_profiles(store: Store, profiles: Path) -> int:
    """Write every line of ``profiles`` (JSON with "user") as ``profile:<user>``; the number written."""
    lines = profiles.read_text(encoding="utf-8").splitlines()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        connection.connect(str(store.socket))
        with connection.makefile("rb") as answers:
            commands = [("SET", f"profile:{json.loads(line)['user']}", line) for line in lines]
            if store.login is not None:
                commands.insert(0, store.login)
            for start in range(0, len(commands), _BATCH):
                batch = commands[start : start + _BATCH]
                connection.sendall(b"".join(map(_encoded, batch)))
                for _, key, _ in batch:
                    answer = answers.readline()
                    if answer != b"+OK\r\n":
                        raise StoreError(f"{store.name}: {key}: expected OK, got {answer!r}")
    return len(lines)


def _encoded(words: tuple[str, str, str]) -> bytes:
    texts = [word.encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)
