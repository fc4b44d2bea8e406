# SPDX-License-Identifier: BSD-2-Clause
"""What gets the load: the running demo, or the service that the options name."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.datasets.sizes import DATASETS
from loadgen.driving import addresses
from loadgen.driving.discovery import Discovery
from loadgen.driving.discovery import add_options as add_discovery
from loadgen.errors import LoadgenError
from loadgen.scenarios import demonstration

if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup

    from loadgen.scenarios.demonstration import Demo

_CONNECT_SECONDS = 5.0


class TargetError(LoadgenError):
    """There is nothing to load; the text says which option is missing or wrong."""


@dataclass(frozen=True)
class Target:
    """A service that gets the load."""

    host: str
    pipeline: str
    service: str
    """What logins sign; empty: the host's HOST:PORT."""
    data: Path
    socket: Path | None
    discovery: Discovery | None
    size: str


def add_options(group: _ArgumentGroup) -> None:
    """Add the options that name a service, and its defaults from the running demo."""
    group.add_argument("--data", help="data directory with the users' keys, for --host (the running demo's by itself)")
    group.add_argument("--pipeline", help="name of the pipeline, which logins sign (syse)")
    group.add_argument("--service", help="the connection conduit's field service, if it is not the address of --host")
    group.add_argument("--socket", help="the monitor's socket, which scenario unfriending needs to change facts")
    add_discovery(group)
    group.add_argument(
        "--size", choices=list(DATASETS), help="how long the scenario takes: as at this size of the demo"
    )


def find(host: str | None, options: Namespace) -> Target:
    """Return the service at ``host``, or else the running demo; LoadgenError when nothing answers there.

    Also sets ``options.size``.
    """
    demo = None
    if not host or not options.data:
        with contextlib.suppress(demonstration.NoDemoError) if host else contextlib.nullcontext():
            demo = demonstration.find()
    if host and demo and host.rstrip("/") != demo.host:
        demo = None
    if host and demo is None and not options.data:
        raise TargetError(
            f"--host {host} is not the running demo: say with --data DIR where the keys of its users are "
            "(the data directory that `python -m loadgen dataset` has made)"
        )
    target = _target(host or (demo.host if demo else ""), options, demo)
    options.size = target.size
    _check(target.host, demo)
    return target


def _target(host: str, options: Namespace, demo: Demo | None) -> Target:
    def path(given: str | None, found: Path | None) -> Path | None:
        return Path(given) if given else found

    data = path(options.data, demo.data if demo else None)
    if data is None:
        raise TargetError("--data DIR is missing: the data directory with the users' keys")
    return Target(
        host=host.rstrip("/"),
        pipeline=options.pipeline or (demo.pipeline if demo else "syse"),
        service=options.service or (demo.service if demo else ""),
        data=data,
        socket=path(options.socket, demo.socket if demo else None),
        discovery=Discovery.of(options) or (demo.discovery if demo else None),
        size=options.size or (demo.size if demo else "quick"),
    )


def _check(host: str, demo: Demo | None) -> None:
    try:
        with socket.create_connection(addresses.read(host), timeout=_CONNECT_SECONDS):
            pass
    except ValueError as error:
        raise TargetError(str(error)) from error
    except OSError as error:
        hint = "the demo that was running has ended: make demo KEEP=1" if demo else "is it running?"
        raise TargetError(f"nothing answers at {host}: {error}; {hint}") from error
