# SPDX-License-Identifier: BSD-2-Clause
"""A pool member that is up: where its monitor, its front end and its files are.

Written by the operator as JSON, in the words of `Member`'s fields.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.stacks import manifests
from loadgen.stacks.monitor import Monitor, Server
from loadgen.stacks.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CREDENTIALS = struct.Struct("3i")  # struct ucred of <sys/socket.h>


class MemberError(LoadgenError):
    """A member cannot be measured; the text says why and what would help."""


@dataclass(frozen=True)
class Member:
    """One member and the pipeline on it that is looked at."""

    name: str
    pipeline: str
    image: Path
    """Directory with bin/shai and what the tasks need."""
    data: Path
    manifests: Path
    """Directory with the bundle that is in force, as YAML or JSON."""
    monitor: Path | Server
    """Its socket or its address."""
    store: Path | None = None
    """Socket of the key-value store, when it has one."""
    seed: Path | None = None
    """Commands that the store was loaded with."""
    processes: tuple[int, ...] = ()
    """Process ids of monitor and store; needed only where their sockets cannot be asked."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What its manifests refer to as $(NAME)."""

    @property
    def shai(self) -> Path:
        """The monitor's program, and its command line."""
        return self.image / "bin" / "shai"

    @property
    def scratch(self) -> Path:
        """Directory for what is made beside the member for a while, on the file system of its data."""
        return self.data.parent / ".benchmark"

    def attach(self, documents: Sequence[dict[str, Any]]) -> Stack:
        """Return the member's running stack; MemberError when it is none that can be loaded."""
        monitor = Monitor(self.shai, self.monitor)
        entry = monitor.pipeline(self.pipeline)
        stopped = [task["name"] for task in entry["tasks"] if task.get("run") != "Once" and not task.get("pid")]
        if stopped:
            raise MemberError(
                f"member {self.name}: task {stopped[0]} of pipeline {self.pipeline} does not run; "
                f"`{monitor.command('status')}` says why"
            )
        listen = manifests.listening_address(manifests.find(documents, self.pipeline))
        return Stack(monitor, self.pipeline, self._address(listen), entry["mode"], self.services())

    def services(self) -> list[int]:
        """List the process ids whose CPU time counts with the tasks'."""
        if self.processes:
            return list(self.processes)
        if not isinstance(self.monitor, Path):
            raise MemberError(
                f"member {self.name}: its monitor is reached at an address only, and its CPU time has to be counted; "
                'give its socket, or the process ids of monitor and store in "processes"'
            )
        return [peer(path) for path in (self.store, self.monitor) if path is not None]

    def _address(self, listen: str) -> tuple[str, int]:
        for name, value in self.variables.items():
            listen = listen.replace(f"$({name})", value)
        host, _, port = listen.rpartition(":")
        if "$(" in host or not port.isdigit():
            raise MemberError(f"member {self.name}: its front end listens at {listen!r}, of which no variable is known")
        return host.strip("[]"), int(port)


def read(path: Path) -> Member:
    """Read a member's description; MemberError names what is missing or wrong."""
    try:
        found = json.loads(path.read_text())
        monitor = found["monitor"]
        member = Member(
            name=found["name"],
            pipeline=found["pipeline"],
            image=Path(found["image"]),
            data=Path(found["data"]),
            manifests=Path(found["manifests"]),
            monitor=Path(monitor["socket"]) if "socket" in monitor else _server(monitor),
            store=Path(found["store"]) if found.get("store") else None,
            seed=Path(found["seed"]) if found.get("seed") else None,
            processes=tuple(found.get("processes") or ()),
            variables=found.get("variables") or {},
        )
    except (OSError, ValueError) as error:
        raise MemberError(f"cannot read {path}: {error}") from error
    except (KeyError, TypeError) as error:
        raise MemberError(f"{path}: not a member's description: {error} is missing or of another type") from error
    for place in (member.shai, member.data, member.manifests, *filter(None, [member.seed])):
        if not os.access(place, os.R_OK):
            raise MemberError(f"member {member.name}: {place} is missing or not readable on this host")
    return member


def peer(path: Path) -> int:
    """Return the process id of who listens on a unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
            answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError as error:
            raise MemberError(f"nobody answers at {path}: {error}") from error
    pid: int = _CREDENTIALS.unpack(answer)[0]
    return pid


def _server(found: Mapping[str, Any]) -> Server:
    return Server(found["address"], Path(found["certificate"]), Path(found["key"]), Path(found["authority"]))
