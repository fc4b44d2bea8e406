# SPDX-License-Identifier: BSD-2-Clause
"""Workers of a measurement as pods of a Job, which connect to the measurement on this machine."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from loadgen.driving import joining
from shai_operator.control.measuring import Joining, MeasuringError
from shai_operator.control.worker_jobs import Workers
from shai_operator.providers import authority, directories

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from shai_operator.control.worker_jobs import WorkerJobs

NAMESPACE = "shai-load"
PORTS = (1024, 65535)
"""At which a front end may listen."""

_MOUNTED = "/run/shai-load"
_BACKLOG = 128
"""Connections that wait until the measurement lets workers in; anybody in the network can open some."""
_SECONDS = 24 * 3600
"""The longest measurement."""
_LABEL = "shai.dev/load"


@dataclass(frozen=True)
class LoadJobs:
    """Starts workers as Jobs."""

    jobs: WorkerJobs
    image: str
    """The image of the pods, which has the package loadgen; empty: this operator starts no Jobs."""
    host: str
    """The address at which pods reach this operator."""
    namespace: str = NAMESPACE

    @contextlib.asynccontextmanager
    async def workers(self, count: int, member: str, place: Path) -> AsyncIterator[Joining]:
        """Run workers for a member's address until the end; MeasuringError when this operator starts none."""
        if not self.image:
            raise MeasuringError(
                "workers as Job: this operator was not told which image their pods have (--load-image); "
                "choose as: Process, or see deploy/benchmarks"
            )
        tls = place / "workers"
        tls.mkdir(mode=0o700)
        files = _identities(self.host, tls)
        family = socket.AF_INET6 if ip_address(self.host).version == 6 else socket.AF_INET  # noqa: PLR2004 - its name
        with socket.create_server((self.host, 0), family=family, backlog=_BACKLOG) as listener:
            port = int(listener.getsockname()[1])
            async with self.jobs.running(self._workers(count, member, port, files)):
                yield Joining(listener.fileno(), tls)

    def _workers(self, count: int, member: str, port: int, files: Mapping[str, str]) -> Workers:
        host = f"[{self.host}]" if ":" in self.host else self.host
        container = {
            "name": "worker",
            "image": self.image,
            "command": ["python", "-m", "loadgen.driving.driver"],
            "args": ["--connect", f"{host}:{port}", "--tls", _MOUNTED],
            "resources": {
                "requests": {"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "16Mi"},
                "limits": {"memory": "1Gi", "ephemeral-storage": "256Mi"},
            },
        }
        return Workers(
            kind="shai-load",
            namespace=self.namespace,
            label=_LABEL,
            count=count,
            container=container,
            mounted=_MOUNTED,
            files=files,
            scratch="64Mi",
            reached=[(self.host, port, port), (member, *PORTS)],
            seconds=_SECONDS,
            # A worker that ends takes its counts with it: the measurement fails, and no other one can replace it.
            failing={"backoffLimit": 0},
        )


def _identities(host: str, tls: Path) -> dict[str, str]:
    """Write the files of the measurement's side; return those of the workers'."""
    root = authority.create()
    server, worker = authority.issue_server(root, host), authority.issue_client(root, "load worker")
    directories.write_private(tls / joining.AUTHORITY, root.certificate)
    directories.write_private(tls / joining.SERVER, server.key + server.certificate)
    return {joining.AUTHORITY: root.certificate, joining.WORKER: worker.key + worker.certificate}
