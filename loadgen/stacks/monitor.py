# SPDX-License-Identifier: BSD-2-Clause
"""The reference monitor as the load generator sees it: the ``shai`` commands, its state and its metrics."""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMMAND_TIMEOUT_SECONDS = 1800.0
_TIMEOUT_SECONDS = 10.0
_HTTP_OK = 200


class MonitorError(LoadgenError):
    """A monitor does not answer, or a ``shai`` command failed; the text is the command and what it said."""


@dataclass(frozen=True)
class Server:
    """A monitor on an address, and the files by which both sides know each other."""

    address: str
    """HOST:PORT."""
    certificate: Path
    key: Path
    authority: Path


class Monitor:
    """Talks to a running ``shai monitor`` through its command line and its HTTP API."""

    def __init__(self, binary: Path, where: Path | Server) -> None:
        self._binary = binary
        self._where = where

    @property
    def socket(self) -> Path | None:
        """The monitor's socket, when it is reached through one."""
        return self._where if isinstance(self._where, Path) else None

    def command(self, *arguments: str) -> str:
        """Return the command line a person would type for the same."""
        return shlex.join([str(self._binary), *arguments, *self._target()])

    def call(self, *arguments: str) -> Any:
        """Run a command and return its JSON answer (None when it has none); MonitorError when it fails."""
        command = [str(self._binary), *arguments, *self._target(), "--output", "json"]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise MonitorError(f"shai {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
        try:
            return json.loads(done.stdout) if done.stdout.strip() else None
        except ValueError as error:
            raise MonitorError(f"shai {' '.join(arguments)}: expected JSON, got {done.stdout[:200]!r}") from error

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            self.status()
        except MonitorError:
            return False
        return True

    def status(self) -> dict[str, Any]:
        """Return its state, as its API describes it."""
        found: dict[str, Any] = json.loads(self._get("/v1/status"))
        return found

    def pipeline(self, name: str) -> dict[str, Any]:
        """Return the state of a pipeline; MonitorError when there is none of that name."""
        known: list[dict[str, Any]] = self.status()["pipelines"] or []
        for entry in known:
            if entry["name"] == name:
                return entry
        names = ", ".join(entry["name"] for entry in known) or "none"
        raise MonitorError(f"the monitor has no pipeline {name}; it has {names}")

    def task_pids(self, pipeline: str) -> list[int]:
        """List the process ids of a pipeline's running tasks; MonitorError when there is none."""
        pids = [task["pid"] for task in self.pipeline(pipeline)["tasks"] if task.get("pid")]
        if not pids:
            raise MonitorError(f"pipeline {pipeline} has no running task")
        return pids

    def interceptions(self, pipeline: str) -> dict[str, int]:
        """Count how often a pipeline has involved the monitor, by kind."""
        return interceptions(self._get("/metrics"), pipeline)

    def audit(self, arguments: Sequence[str]) -> list[dict[str, Any]]:
        """Return the audit records that ``shai audit`` selects, oldest first."""
        answer = self.call("audit", *arguments)
        records = answer.get("records", []) if isinstance(answer, dict) else answer
        return list(records or [])

    def _target(self) -> list[str]:
        if isinstance(self._where, Path):
            return ["--socket", str(self._where)]
        it = self._where
        files = {"--certificate": it.certificate, "--key": it.key, "--server-ca": it.authority}
        return ["--server", it.address, *(str(word) for pair in files.items() for word in pair)]

    def _get(self, path: str) -> str:
        name = self._where if isinstance(self._where, Path) else self._where.address
        try:
            connection = _connection(self._where)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read().decode()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise MonitorError(f"no monitor answers at {name}: {error}; is it running?") from error
        if answer.status != _HTTP_OK:
            raise MonitorError(f"GET {path} at {name}: expected status 200, got {answer.status}: {body[:200]}")
        return body


def interceptions(metrics: str, pipeline: str) -> dict[str, int]:
    """Pick ``shai_interceptions_total`` of one pipeline out of a Prometheus exposition, by kind."""
    wanted = "\n".join(_family(metrics.splitlines(), "shai_interceptions"))
    return {
        sample.labels["kind"]: int(sample.value)
        for family in text_string_to_metric_families(wanted + "\n")
        for sample in family.samples
        if sample.labels.get("pipeline") == pipeline
    }


def _family(lines: Iterable[str], prefix: str) -> list[str]:
    return [line for line in lines if line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith(prefix)]


def _connection(where: Path | Server) -> http.client.HTTPConnection:
    if isinstance(where, Path):
        return UnixConnection(where)
    host, _, port = where.address.rpartition(":")
    context = ssl.create_default_context(cafile=str(where.authority))
    context.load_cert_chain(where.certificate, where.key)
    return http.client.HTTPSConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_SECONDS, context=context)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("monitor", timeout=_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
