# SPDX-License-Identifier: BSD-2-Clause
"""A real sshd on a loopback port, with right and wrong keys."""

from __future__ import annotations

import getpass
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shai_operator.providers.interface import Login
from testing.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SSHD = "/usr/sbin/sshd"
CONFIGURATION = "sshd_config"
SETTINGS = """
ListenAddress {address}
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
"""


@dataclass(frozen=True)
class Server:
    """An sshd with the keys of both sides: ``host`` and ``user`` are right, ``other-…`` are wrong."""

    directory: Path
    port: int

    def login(self, *, user: str = "user", host: str = "host") -> Login:
        """Return a login with a user's key and a host's, by the names of their files."""
        return Login(getpass.getuser(), self.key(user), self.key(f"{host}.pub"), self.port)

    def key(self, name: str) -> str:
        """Return the content of a key's file."""
        return (self.directory / name).read_text()


def make_directory() -> None:
    """Make the directory that Debian's sshd wants of root, also to read its configuration; its service makes it."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def prepare(directory: Path, address: str, *, seen: Path | None = None, settings: str = "") -> Server:
    """Write new keys and the configuration of an sshd that will listen at a free port of the address.

    ``seen`` is the path of the directory where sshd runs.
    """
    for name in ("host", "other-host", "user", "other-user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", directory / name]
        subprocess.run(command, check=True, timeout=300)
    server = Server(directory, free_port(address))
    text = SETTINGS.format(address=address, port=server.port, directory=seen or directory)
    (directory / CONFIGURATION).write_text(text + settings)
    return server


@contextmanager
def serve(
    directory: Path, address: str = "127.0.0.1", *, settings: str = "", before: Sequence[str] = ()
) -> Iterator[Server]:
    """Run sshd with new keys, and with more ``settings``.

    ``before`` are words before its command, which start it in a surrounding of its own.
    """
    server = prepare(directory, address, settings=settings)
    make_directory()
    file = directory / CONFIGURATION
    with subprocess.Popen([*before, SSHD, "-D", "-e", "-f", file], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "Server listening" in line, line
            yield server
        finally:
            process.kill()
