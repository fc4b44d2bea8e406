# SPDX-License-Identifier: BSD-2-Clause
"""The key-value stores of stacks: a confined one, and an open one for mode baseline.

In the confined store nobody may do anything until the monitor gives rights; ``shai keyvalue configure`` makes its
configuration and the administrator's secrets. Mode baseline enforces nothing, so its tasks connect to a store of their
own with Redis' defaults.
"""

from __future__ import annotations

import contextlib
import json
import secrets as random
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loadgen.datasets.commands import encode
from loadgen.datasets.files import opened
from loadgen.errors import LoadgenError

_TIMEOUT_SECONDS = 30.0


class StoreError(LoadgenError):
    """A key-value store refused a command, or ended."""


@dataclass(frozen=True)
class Store:
    """A store: its socket, the command that starts it, and the login (None: no login)."""

    name: str
    socket: Path
    command: list[str]
    login: tuple[str, str, str] | None = None

    def listens(self) -> bool:
        """Whether it accepts connections; the file of its socket exists a moment earlier."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            return connection.connect_ex(str(self.socket)) == 0


def open_store(directory: Path) -> Store:
    """Describe an open store in ``directory``, which other users may search, because tasks run as other users.

    Anybody who knows the directory's path can use the store.
    """
    path = directory / "open.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "777"]
    return Store("open key-value store", path, [*command, "--save", "", "--appendonly", "no", "--dir", str(directory)])


def confined_store(files: dict[str, str], secrets: str) -> Store:
    """Describe the store whose ``files`` `shai keyvalue configure` made; ``secrets`` is the secrets' text."""
    try:
        found = json.loads(secrets)
        login = (found["AuthCommand"], found["Administrator"], found["Password"])
    except (KeyError, ValueError) as error:
        raise StoreError(f"{files['secrets']}: not the secrets of a key-value store: {error}") from error
    return Store("confined key-value store", Path(files["socket"]), ["redis-server", files["configuration"]], login)


def load(store: Store, commands: Path) -> None:
    """Send a store a file of commands, as RESP or as lines; StoreError with the first refused one."""
    mark = random.token_hex(16).encode()  # the answer after all others
    head = encode(*store.login) if store.login else b""
    real = commands.resolve()  # named by whoever owns the pool, who may use a link
    with (
        opened(real.parent, real.name) as content,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
    ):
        connection.settimeout(_TIMEOUT_SECONDS)
        connection.connect(str(store.socket))
        # Sent in parallel with reading: a store stops reading commands while its answers are not read.
        tail = b"\r\n" + encode("ECHO", mark.decode())
        sender = threading.Thread(target=_send, args=(connection, head, content, tail))
        sender.start()
        try:
            with connection.makefile("rb") as answers:
                _check(answers, mark, store, commands)
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            sender.join()


def _send(connection: socket.socket, head: bytes, content: BinaryIO, tail: bytes) -> None:
    with contextlib.suppress(OSError):  # the reading side reports the cause
        connection.sendall(head)
        connection.sendfile(content)
        connection.sendall(tail)


def _check(answers: BinaryIO, mark: bytes, store: Store, commands: Path) -> None:
    try:
        for line in answers:
            if line.startswith(b"-"):
                cause = line[1:].decode(errors="replace").strip()
                raise StoreError(f"{store.name} refuses a command of {commands}: {cause}")
            if line.strip() == mark:
                return
    except TimeoutError as error:
        raise StoreError(f"{store.name} waits for the rest of a command: {commands} is cut off") from error
    raise StoreError(f"{store.name} ended while {commands} was loaded into it")
