# SPDX-License-Identifier: BSD-2-Clause
"""The reference monitor as the demo sees it: the ``shai`` commands and its metrics."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

COMMAND_TIMEOUT_SECONDS = 1800.0
_METRICS_TIMEOUT_SECONDS = 10.0
_HTTP_OK = 200


class MonitorError(Exception):
    """A ``shai`` command failed; the text is the command and what it said."""


class Monitor:
    """Talks to a running ``shai monitor`` through its command line and its socket."""

    def __init__(self, binary: Path, socket_path: Path) -> None:
        self._binary = binary
        self.socket = socket_path

    def command(self, *arguments: str) -> str:
        """Return the command line a person would type for the same."""
        return " ".join([str(self._binary), *arguments, "--socket", str(self.socket)])

    def call(self, *arguments: str) -> Any:
        """Run a command and return its JSON answer (None when it has none); MonitorError when it fails."""
        command = [str(self._binary), *arguments, "--socket", str(self.socket), "--output", "json"]
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
        """Whether it answers and can take manifests."""
        try:
            self.call("status")
        except MonitorError:
            return False
        return True

    def task_pids(self, pipeline: str) -> list[int]:
        """List the process ids of a pipeline's running tasks; MonitorError when there is none."""
        for entry in self.call("status")["pipelines"]:
            if entry["name"] == pipeline:
                pids = [task["pid"] for task in entry["tasks"] if task.get("pid")]
                if pids:
                    return pids
        raise MonitorError(f"shai status: pipeline {pipeline} has no running task")

    def interceptions(self, pipeline: str) -> dict[str, int]:
        """Count how often a pipeline has involved the monitor, by kind."""
        return interceptions(self._metrics(), pipeline)

    def audit(self, arguments: Sequence[str]) -> list[dict[str, Any]]:
        """Return the audit records that ``shai audit`` selects, oldest first."""
        answer = self.call("audit", *arguments)
        records = answer.get("records", []) if isinstance(answer, dict) else answer
        return list(records or [])

    def _metrics(self) -> str:
        connection = _UnixConnection(self.socket)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            body = answer.read().decode()
        except OSError as error:
            raise MonitorError(f"cannot read metrics from {self.socket}: {error}; is the monitor running?") from error
        finally:
            connection.close()
        if answer.status != _HTTP_OK:
            raise MonitorError(f"GET /metrics: expected status 200, got {answer.status}: {body[:200]}")
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


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("monitor", timeout=_METRICS_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
