# SPDX-License-Identifier: BSD-2-Clause
"""Ports that ordinary users cannot take."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from loadgen.driving import privileged
from loadgen.driving.privileged import privileged_port

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root takes a port below 1024")


def as_nobody(program: str, *arguments: str) -> str:
    """Return what a program prints, which an ordinary user runs; it needs nothing of the project."""
    command = ["/usr/bin/python3", "-I", "-c", program, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"
    )
    return done.stdout.strip()


TAKE = """
import socket, sys
try:
    socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()
    print("taken")
except PermissionError:
    print("refused")
"""


@needs_root
def test_an_ordinary_user_cannot_take_the_port() -> None:
    assert as_nobody(TAKE, str(privileged_port(HOST))) == "refused"


@needs_root
def test_a_port_of_somebody_else_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = privileged_port(HOST)
    free = next(port for port in iter(lambda: privileged_port(HOST), None) if port != taken)
    ldaps = 636
    monkeypatch.setattr(privileged, "_is_known", lambda port: port == ldaps)
    monkeypatch.setattr(random, "sample", lambda *_, **__: [taken, ldaps, free])
    with socket.create_server((HOST, taken)):
        assert privileged_port(HOST) == free


@needs_root
def test_ports_that_everybody_may_take_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = tmp_path / "first"
    monkeypatch.setattr(privileged, "_UNPRIVILEGED", first)
    for given, few in (("0", range(1)), ("601", range(600, 601))):
        first.write_text(f"{given}\n")
        assert privileged_port(HOST) in few


def test_who_is_not_root_leaves_the_choice_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert privileged_port(HOST) == 0
