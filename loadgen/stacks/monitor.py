# SPDX-License-Identifier: BSD-2-Clause
"""The reference monitor's interface for the load generator: the ``shai`` commands, its state and its metrics."""

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

    from prometheus_client.samples import Sample

COMMAND_TIMEOUT_SECONDS = 1800.0
_TIMEOUT_SECONDS = 10.0
_HTTP_OK = 200


class MonitorError(LoadgenError):
    """A monitor does not answer, or a ``shai`` command failed; the text is the command and its output."""


@dataclass(frozen=True)
class Server:
    """A monitor's address, and the certificates for both sides."""

    address: str
    """HOST:PORT."""
    certificate: Path
    key: Path
    authority: Path


class Monitor:
    """Talks to a running ``shai monitor`` through the command line and its HTTP API."""

    def __init__(self, binary: Path, endpoint: Path | Server) -> None:
        self._binary = binary
        self._endpoint = endpoint

    @property
    def binary(self) -> Path:
        """The program of its commands."""
        return self._binary

    @property
    def name(self) -> str:
        """Where it is: the socket's path or the address."""
        return str(self._endpoint) if isinstance(self._endpoint, Path) else self._endpoint.address

    @property
    def socket(self) -> Path | None:
        """The monitor's socket; None when it has an address."""
        return self._endpoint if isinstance(self._endpoint, Path) else None

    def command(self, *arguments: str) -> str:
        """Return the equivalent command line for a person."""
        return shlex.join([str(self._binary), *arguments, *self._target()])

    def call(self, *arguments: str) -> Any:
        """Run a command and return its JSON output (None when there is none); MonitorError when it fails."""
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
        """Whether the monitor answers."""
        try:
            self.status()
        except MonitorError:
            return False
        return True

    def status(self) -> dict[str, Any]:
        """Return the monitor's state, as its API describes it."""
        found: dict[str, Any] = json.loads(self._get("/v1/status"))
        return found

    def pipeline(self, name: str) -> dict[str, Any]:
        """Return the state of a pipeline; MonitorError when it does not exist."""
        known: list[dict[str, Any]] = self.status()["pipelines"] or []
        for entry in known:
            if entry["name"] == name:
                return entry
        names = ", ".join(entry["name"] for entry in known) or "none"
        text = f"the monitor has no pipeline {name}; it has {names}"
        raise MonitorError(text, public=text)

    def tasks(self, pipeline: str) -> dict[str, int]:
        """Return the process ids of a pipeline's running tasks by name; MonitorError when there is none."""
        found = {task["name"]: task["pid"] for task in self.pipeline(pipeline)["tasks"] if task.get("pid")}
        if not found:
            raise MonitorError(f"pipeline {pipeline} has no running task")
        return found

    def interceptions(self, pipeline: str) -> dict[str, int]:
        """Return the number of the monitor's interceptions for a pipeline, by kind."""
        return interceptions(self._get("/metrics"), pipeline)

    def samples(self, *families: str) -> list[Sample]:
        """Return all samples of families of its metrics, whose names have no suffix such as _total."""
        return samples(self._get("/metrics"), *families)

    def audit(self, arguments: Sequence[str]) -> list[dict[str, Any]]:
        """Return the audit records that ``shai audit`` selects, oldest first."""
        answer = self.call("audit", *arguments)
        records = answer.get("records", []) if isinstance(answer, dict) else answer
        return list(records or [])

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection to the HTTP API, for one request; the caller closes it."""
        return _connection(self._endpoint)

    def _target(self) -> list[str]:
        if isinstance(self._endpoint, Path):
            return ["--socket", str(self._endpoint)]
        endpoint = self._endpoint
        files = {"--certificate": endpoint.certificate, "--key": endpoint.key, "--server-ca": endpoint.authority}
        return ["--server", endpoint.address, *(str(word) for pair in files.items() for word in pair)]

    def _get(self, path: str) -> str:
        name = self.name
        try:
            connection = self.connect()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read().decode()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            text = f"no monitor answers at {name}: {error}; is it running?"
            raise MonitorError(text, public=text) from error
        if answer.status != _HTTP_OK:
            raise MonitorError(f"GET {path} at {name}: expected status 200, got {answer.status}: {body[:200]}")
        return body


def interceptions(metrics: str, pipeline: str) -> dict[str, int]:
    """Return ``shai_interceptions_total`` of one pipeline from a Prometheus exposition, by kind."""
    return {
        sample.labels["kind"]: int(sample.value)
        for sample in samples(metrics, "shai_interceptions")
        if sample.labels.get("pipeline") == pipeline
    }


def samples(metrics: str, *families: str) -> list[Sample]:
    """Return all samples of families from a Prometheus exposition. Others are not parsed, because that takes time."""
    wanted = [line for name in families for line in _family(metrics.splitlines(), name)]
    return [sample for family in text_string_to_metric_families("\n".join(wanted) + "\n") for sample in family.samples]


def _family(lines: Iterable[str], prefix: str) -> list[str]:
    return [line for line in lines if line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith(prefix)]


def _connection(endpoint: Path | Server) -> http.client.HTTPConnection:
    if isinstance(endpoint, Path):
        return UnixConnection(endpoint)
    host, _, port = endpoint.address.rpartition(":")
    context = ssl.create_default_context(cafile=str(endpoint.authority))
    context.load_cert_chain(endpoint.certificate, endpoint.key)
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
