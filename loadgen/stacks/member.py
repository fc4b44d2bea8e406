# SPDX-License-Identifier: BSD-2-Clause
"""A running pool member: the paths and addresses of its monitor, its front end and its files.

The operator writes the description as JSON, with the names of `Member`'s fields.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.driving.protocol import FrontEnd
from loadgen.errors import PublicError
from loadgen.stacks import manifests
from loadgen.stacks.monitor import Monitor, Server
from loadgen.stacks.remote import RemoteStack
from loadgen.stacks.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"\$\(([^()]*)\)")
_PORT = re.compile(r"[0-9]{1,5}")
_LAST_PORT = 65535
_CREDENTIALS = struct.Struct("3i")  # struct ucred of <sys/socket.h>


class MemberError(PublicError):
    """A member cannot be measured; the text says why and what to do."""


@dataclass(frozen=True)
class Member:
    """A member and one pipeline on it."""

    name: str
    pipeline: str
    image: Path
    """The directory with bin/shai and the tasks' programs."""
    data: Path
    manifests: Path
    """The directory with the bundle in force, as YAML or JSON."""
    monitor: Path | Server
    """The monitor's socket or address."""
    store: Path | None = None
    """The socket of the key-value store, if there is one."""
    seed: Path | None = None
    """The commands with which the store was loaded."""
    processes: tuple[int, ...] = ()
    """The process ids of monitor and store; needed only if they cannot be read from their sockets."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The variables $(NAME) of the manifests."""
    runtimes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What tasks may execute and read beside their conduits: paths, which may have variables, by name."""
    sources: tuple[str, ...] = ()
    """What the member's monitor may fetch facts from, beside its own store; its twins may, too."""
    program: Path | None = None
    """The program of the commands, where that of the image is for another system."""
    twins: Mapping[str, Server] = field(default_factory=dict)
    """The monitors of the twins beside a member on another host, by name. ``image`` and ``data`` are then copies on
    this machine: of the programs, and of the files that describe people and queries."""

    @property
    def shai(self) -> Path:
        """The program of the commands."""
        return self.program or self.image / "bin" / "shai"

    @property
    def scratch(self) -> Path:
        """A directory for temporary files, on the file system of the member's data."""
        return self.data.parent / ".benchmark"

    def attach(self, documents: Sequence[dict[str, Any]]) -> Stack:
        """Return the member's running stack; MemberError when it cannot be measured."""
        monitor = Monitor(self.shai, self.monitor)
        entry = monitor.pipeline(self.pipeline)
        stopped = [task["name"] for task in entry["tasks"] if task.get("run") == "Always" and not task.get("pid")]
        if stopped:
            raise MemberError(
                f"member {self.name}: task {stopped[0]} of pipeline {self.pipeline} does not run; "
                f"`{monitor.command('status')}` says why"
            )
        first, *others = self._front_ends(manifests.find(documents, self.pipeline)).items()
        mode, own, beside = entry["mode"], first[1], dict(others)
        if self.twins:
            return RemoteStack(monitor, self.pipeline, own.address, mode, service=own.service, beside=beside)
        return Stack(monitor, self.pipeline, own.address, mode, self.services(), service=own.service, beside=beside)

    def _front_ends(self, pipeline: dict[str, Any]) -> dict[str, FrontEnd]:
        """Return the front ends by task."""
        values = {**manifests.variables(pipeline), **self.variables}  # the member's take precedence, as on its monitor
        found = {}
        for task, conduit in manifests.connections(pipeline).items():
            address = self._address(_replaced(conduit["listen"], values))
            service = _replaced(conduit.get("service") or "", values)
            found[task] = FrontEnd.dialled(address, self.pipeline, service)
        return found

    def services(self) -> list[int]:
        """List the process ids of the monitor and the store, whose CPU time is counted with that of the tasks."""
        if self.processes:
            return list(self.processes)
        if not isinstance(self.monitor, Path):
            raise MemberError(
                f"member {self.name}: its monitor is reached at an address only, and its CPU time has to be counted; "
                'give its socket, or the process ids of monitor and store in "processes"'
            )
        return [peer(path) for path in (self.store, self.monitor) if path is not None]

    def _address(self, listen: str) -> tuple[str, int]:
        host, _, port = listen.rpartition(":")
        if "$(" in listen:
            raise MemberError(f"member {self.name}: its front end listens at {listen!r}, of which no variable is known")
        if not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
            raise MemberError(f"member {self.name}: its front end listens at {listen!r}, which has no port")
        return host.strip("[]"), int(port)


def read(path: Path) -> Member:
    """Read a member's description; MemberError names the missing or wrong field."""
    try:
        found = json.loads(path.read_text())
        monitor = found["monitor"]
        member = Member(
            name=found["name"],
            pipeline=found["pipeline"],
            image=Path(found["image"]),
            program=Path(found["program"]) if found.get("program") else None,
            data=Path(found["data"]),
            manifests=Path(found["manifests"]),
            monitor=Path(monitor["socket"]) if "socket" in monitor else _server(monitor),
            store=Path(found["store"]) if found.get("store") else None,
            seed=Path(found["seed"]) if found.get("seed") else None,
            processes=tuple(found.get("processes") or ()),
            variables=_texts(found.get("variables") or {}),
            runtimes=_lists(found.get("runtimes") or {}),
            sources=_sources(found.get("sources") or []),
            twins={name: _server(twin) for name, twin in (found.get("twins") or {}).items()},
        )
    except (OSError, ValueError) as error:
        raise MemberError(f"cannot read {path}: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise MemberError(f"{path}: not a member's description: {error} is missing or of another type") from error
    for place in (member.shai, member.data, member.manifests, *filter(None, [member.seed])):
        if not os.access(place, os.R_OK):
            raise MemberError(f"member {member.name}: {place} is missing or not readable on this host")
    return member


def write(member: Member, path: Path) -> None:
    """Write the description of a member on this host, which `read` reads."""
    found = {
        "name": member.name,
        "pipeline": member.pipeline,
        "image": str(member.image),
        "data": str(member.data),
        "manifests": str(member.manifests),
        "monitor": {"socket": str(member.monitor)},
        "store": str(member.store) if member.store else None,
        "seed": str(member.seed) if member.seed else None,
        "processes": list(member.processes),
        "variables": dict(member.variables),
        "runtimes": {name: list(paths) for name, paths in member.runtimes.items()},
        "sources": list(member.sources),
    }
    path.write_text(json.dumps(found, indent=2) + "\n")


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) as the monitor does: once, and nothing in a value."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), text)


def peer(path: Path) -> int:
    """Return the process id of the server of a unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
            answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError as error:
            raise MemberError(f"no server answers at {path}: {error}") from error
    pid: int = _CREDENTIALS.unpack(answer)[0]
    return pid


def _texts(found: Any) -> dict[str, str]:
    """Return variables and their values; TypeError when one is no text."""
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise TypeError("'variables'")
    return found


def _lists(found: Any) -> dict[str, list[str]]:
    """Return runtimes and their paths; TypeError when one is no list of texts."""
    if not isinstance(found, dict) or not all(isinstance(paths, list) for paths in found.values()):
        raise TypeError("'runtimes'")
    if not all(isinstance(path, str) for paths in found.values() for path in paths):
        raise TypeError("'runtimes'")
    return found


def _sources(found: Any) -> tuple[str, ...]:
    """Return what a monitor may fetch facts from; TypeError when it is no list of texts."""
    if not isinstance(found, list) or not all(isinstance(source, str) for source in found):
        raise TypeError("'sources'")
    return tuple(found)


def _server(found: Mapping[str, Any]) -> Server:
    return Server(found["address"], Path(found["certificate"]), Path(found["key"]), Path(found["authority"]))
