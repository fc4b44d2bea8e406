# SPDX-License-Identifier: BSD-2-Clause
"""A stand-in for a FreeBSD host: an sshd of this machine, whose /usr/local is a directory of the test.

Real playbooks survey it and delete from it. They do not prepare it: it says that it runs Linux.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.providers.process import COLLECTION
from tests.providers import sshd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.providers.sshd import Server

_PROGRAMS = {
    "python3": f'exec {sys.executable} "$@"\n',
    "freebsd-version": "echo 14.4-RELEASE\n",
    "sysctl": "case $2 in hw.physmem) echo 17179869184 ;; hw.pagesize) echo 4096 ;; *) echo 1048576 ;; esac\n",
    "lockf": "exit 0\n",
    "ifconfig": "exit 1\n",
}


@dataclass(frozen=True)
class FreeBSDHost:
    """A host that seems to run FreeBSD, with virtual machines in a directory."""

    server: Server
    place: Path

    @property
    def storage(self) -> Path:
        """The directory for virtual machines."""
        return self.place / "storage"

    def machines(self) -> set[str]:
        """Return the names of the virtual machines on it."""
        return {path.name for path in (self.storage / "vms").iterdir()}

    def machine(self, name: str, pool: str, owner: str, image: str) -> None:
        """Make what is on the disk of a virtual machine that is off."""
        place = self.storage / "vms" / name
        place.mkdir()
        mark = {"name": name, "pool": pool, "owner": owner, "image": image, "memory_mebibytes": 512}
        (place / "vm.json").write_text(json.dumps(mark))
        (place / "state").write_text("stopped\n")


@contextmanager
def serve(place: Path, address: str) -> Iterator[FreeBSDHost]:
    """Run a host; its programs and the roles' own ones are in a directory that only it sees as /usr/local."""
    local = place / "local"
    (local / "bin").mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        (local / "bin" / name).write_text(f"#!/bin/sh\n{text}")
        (local / "bin" / name).chmod(0o755)
    (local / "libexec" / "shai").mkdir(parents=True)
    script = (COLLECTION / "roles" / "bhyve_host" / "files" / "storage.sh").read_text()
    (local / "libexec" / "shai" / "storage.sh").write_text(script)
    (place / "storage" / "vms").mkdir(parents=True)
    (place / "storage" / "images").mkdir()
    keys = place / "keys"
    keys.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount --bind {local} /usr/local && exec "$@"', "sh"]
    path = "SetEnv PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    with sshd.serve(keys, address, settings=path, before=mount) as server:
        yield FreeBSDHost(server, place)
