# SPDX-License-Identifier: BSD-2-Clause
"""A host that runs systemd: a container with this machine's own programs, into which one logs in by SSH.

systemd-nspawn boots the machine's root file system beneath a layer in memory, so what is installed in the container
leaves no trace on the machine. It shares the network, so members need addresses of their own. The root file system
changes beneath the layer, which Linux does not expect: the container may go on seeing a file that has been deleted. So
it has directories of its own where programs of the machine keep files for a moment, such as locks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testing.waiting import until
from tests.providers import sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.sshd import Server

LOGIN = "/etc/shai-login"
"""Where the container has the keys and the configuration of its sshd."""

UNITS = {
    "shai-login.service": f"""
[Service]
RuntimeDirectory=sshd
ExecStart={sshd.SSHD} -D -e -f {LOGIN}/{sshd.CONFIGURATION}
""",
    # The machine's other services, such as timers that download updates, are not started.
    "shai-host.target": """
[Unit]
Requires=basic.target shai-login.service
After=basic.target shai-login.service
AllowIsolate=yes
""",
}
OWN = ("/root", "/var/lib/shai-tasks")
"""Directories that are the container's own, beside /tmp and /run. With the machine's, each shell that sshd starts could
wait for a lock that a shell outside had when the container looked, and the monitors find the machine's registry of
users changing."""
_HIERARCHIES = ("systemd", "unified", "")
"""Where systemd has control groups, beneath /sys/fs/cgroup: with cgroups of version 1, with both, of version 2."""
_JOIN = 'while test "$1" != --; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'
"""A shell's command that joins control groups, then becomes a program."""
_POWER_OFF = signal.SIGRTMIN + 4
"""systemd(1): starts poweroff.target."""


def lacking() -> str:
    """Return why this machine cannot run such a container; empty when it can."""
    programs = ("systemd-nspawn", sshd.SSHD, "/lib/systemd/systemd")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is not installed (Debian's packages systemd, systemd-container, openssh-server)"
    if os.geteuid() != 0:
        return "only the superuser boots containers"
    with tempfile.TemporaryDirectory() as directory:
        tried = subprocess.run(
            ["mount", "-t", "tmpfs", "tmpfs", directory], capture_output=True, text=True, check=False, timeout=60
        )
        if tried.returncode != 0:
            return f"this machine mounts no file systems: {tried.stderr.strip()}"
        subprocess.run(["umount", directory], check=True, timeout=60)
    return ""


@dataclass(frozen=True)
class SystemdHost:
    """The container while it runs."""

    server: Server
    init: int
    """The process number of its systemd."""
    root: Path

    def run(self, *command: str, said: str = "", check: bool = True) -> str:
        """Run a command in the container, as root, with ``said`` as its input; return its output."""
        inside = ["nsenter", "--target", str(self.init), "--all", *command]
        done = subprocess.run(inside, input=said, capture_output=True, text=True, check=False, timeout=300)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def boot(directory: Path, address: str) -> Iterator[SystemdHost]:
    """Boot the container, with an sshd at a free port of the address; power it off at the end."""
    keys = directory / "keys"
    keys.mkdir()
    server = sshd.prepare(keys, address, seen=Path(LOGIN))
    with _root(directory) as root, _control_groups(f"shai-{server.port}") as groups:
        for name, text in UNITS.items():
            (root / "etc/systemd/system" / name).write_text(text)
        log = directory / "boot.log"
        command: list[str | Path] = [
            *("sh", "-c", _JOIN, "sh"),
            *groups,
            "--",
            *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--link-journal=no"),
            *("--directory", root, "--machine", f"shai-{server.port}", f"--bind-ro={keys}:{LOGIN}"),
            *(f"--tmpfs={path}:mode=0755" for path in OWN),
            # A file system with id-mapped mounts, which an overlay has not.
            f"--bind={directory / 'layer/srv'}:/srv",
            # Those of a host's root: otherwise no sandbox can be made.
            *("--capability=all", "--system-call-filter=@known"),
            *("systemd.unit=shai-host.target", "systemd.show_status=no"),
        ]
        with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as container:
            try:
                until(lambda: _answers(server, address), f"the container's sshd answers ({log})")
                yield SystemdHost(server, _child(container.pid), root)
            finally:
                os.kill(_child(container.pid), _POWER_OFF)
                try:
                    container.wait(timeout=120)
                except subprocess.TimeoutExpired:
                    container.kill()
                    raise


@contextmanager
def _root(directory: Path) -> Iterator[Path]:
    """Mount the machine's root file system beneath a layer in memory."""
    layer, root = directory / "layer", directory / "root"
    layer.mkdir()
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layer], check=True, timeout=60)
    try:
        for name in ("upper", "work", "srv"):
            (layer / name).mkdir()
        layers = f"lowerdir=/,upperdir={layer}/upper,workdir={layer}/work"
        subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", root], check=True, timeout=60)
        try:
            yield root
        finally:
            subprocess.run(["umount", "--recursive", root], check=True, timeout=60)
    finally:
        subprocess.run(["umount", layer], check=True, timeout=60)


@contextmanager
def _control_groups(name: str) -> Iterator[list[Path]]:
    """Make control groups for the container alone: the units of another one beside it have the same names."""
    mounted = [Path("/sys/fs/cgroup", part) for part in _HIERARCHIES]
    groups = [place / name for place in mounted if (place / "cgroup.procs").exists()]
    for group in groups:
        group.mkdir()
    try:
        yield groups
    finally:
        for group in groups:
            for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                inner.rmdir()
            group.rmdir()


def _child(process: int) -> int:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    assert children, "the container has ended"
    return int(children[0])


def _answers(server: Server, address: str) -> bool:
    command = ["ssh-keyscan", "-p", str(server.port), address]
    return "ssh-ed25519" in subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
