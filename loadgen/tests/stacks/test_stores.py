# SPDX-License-Identifier: BSD-2-Clause
"""Key-value stores, with a real Redis."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.datasets import commands
from loadgen.datasets.files import DataFileError
from loadgen.stacks import stores
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

BOB = {"user": "bob", "friends": [], "interests": ["ünits"]}


def confined_store(directory: Path) -> stores.Store:
    """Return a store with a renamed AUTH and no rights for the default user, as shai configures it."""
    files = {name: str(directory / name) for name in ("configuration", "secrets", "socket")}
    (directory / "configuration").write_text(
        f'port 0\nunixsocket "{files["socket"]}"\ndir "{directory}"\nsave ""\n'
        "user default off\nuser monitor on >word ~* +@all\nrename-command AUTH enter\n"
    )
    return stores.confined_store(files, '{"AuthCommand":"enter","Administrator":"monitor","Password":"word"}')


@pytest.mark.parametrize("make", [stores.open_store, confined_store])
@pytest.mark.parametrize("lines", [False, True])
def test_commands_reach_the_store(
    data: Path,
    tmp_path: Path,
    make: Callable[[Path], stores.Store],
    lines: bool,  # noqa: FBT001
) -> None:
    store = make(tmp_path)
    commands.write_seed_commands(data)
    file = tmp_path / "commands"
    (data / commands.SEED_COMMANDS).replace(file)
    if lines:
        file.write_text(f"SET profile:bob {json.dumps(json.dumps(BOB))}")
    with subprocess.Popen(store.command, stdout=subprocess.DEVNULL) as process:
        try:
            until(store.listens, "the store listens")
            stores.load(store, file)
            if store.login is not None:
                with pytest.raises(stores.StoreError, match=r"refuses a command of .*commands: NOAUTH"):
                    stores.load(replace(store, login=None), file)
                return
            command = ["redis-cli", "-s", str(store.socket), "--raw", "GET", "profile:bob"]
            found = subprocess.check_output(command, text=True)
        finally:
            process.terminate()
    assert json.loads(found) == BOB


@pytest.mark.parametrize("own", [os.mkfifo, Path.mkdir])
def test_only_a_file_is_loaded_into_a_store(tmp_path: Path, own: Callable[[Path], None]) -> None:
    own(tmp_path / "commands")
    with pytest.raises(DataFileError, match=r"cannot read .*/commands: it is not a regular file"):
        stores.load(stores.open_store(tmp_path), tmp_path / "commands")


def test_a_long_file_of_commands_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    os.truncate(tmp_path / "real", 1 << 40)
    (tmp_path / "commands").symlink_to("real")  # whoever owns the pool may name a link
    store = stores.open_store(tmp_path)
    with subprocess.Popen(store.command, stdout=subprocess.DEVNULL) as process:
        try:
            until(store.listens, "the store listens")
            with pytest.raises(stores.StoreError, match="open key-value store "):
                stores.load(store, tmp_path / "commands")
        finally:
            process.terminate()


def test_a_store_whose_socket_only_has_its_file_does_not_listen_yet(tmp_path: Path) -> None:
    store = stores.open_store(tmp_path)
    assert not store.listens()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(store.socket))
        assert store.socket.exists()
        assert not store.listens()
        server.listen()
        assert store.listens()


def test_damaged_secrets_are_named(tmp_path: Path) -> None:
    with pytest.raises(stores.StoreError, match="secrets: not the secrets of a key-value store"):
        stores.confined_store({"secrets": str(tmp_path / "secrets")}, "{}")
