# SPDX-License-Identifier: BSD-2-Clause
"""The demo's cluster: the one that KUBECONFIG names, or a devcluster of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadgen.stacks.supervisor import Supervisor

_LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d")
"""Log lines of kubectl, which are not for people."""
_KUBECTL_SECONDS = 180.0
_START_SECONDS = 120.0
_POLL_SECONDS = 0.5


class KubernetesError(LoadgenError):
    """The cluster refused a request, or a condition did not become true; the text says what and why."""


@dataclass(frozen=True)
class Cluster:
    """A cluster, by kubectl."""

    kubectl: Path
    """The devcluster program, which is also kubectl."""
    kubeconfig: Path
    namespace: str
    check: Callable[[], None]
    """Raises when devcluster or the operator has ended."""

    def run(self, *arguments: str) -> str:
        """Run kubectl; return its output, or raise KubernetesError with its error message."""
        command = f"kubectl {' '.join(arguments)}"
        try:
            done = subprocess.run(
                [self.kubectl, "kubectl", "--namespace", self.namespace, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_KUBECTL_SECONDS,
                env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
                # A terminal's Ctrl-C is for the demo, which may still need kubectl to finish.
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KubernetesError(
                f"`{command}` did not end within {_KUBECTL_SECONDS:.0f} s; does the API server of "
                f"{self.kubeconfig} answer?"
            ) from error
        if done.returncode != 0:
            message = "\n".join(line for line in done.stderr.splitlines() if not _LOG_LINE.match(line))
            raise KubernetesError(f"`{command}` failed: {message.strip() or done.stdout.strip()}")
        return done.stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object."""
        found: dict[str, Any] = json.loads(self.run("get", kind, name, "--output", "json"))
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an object; None when it does not exist."""
        answer = self.run("get", kind, name, "--output", "json", "--ignore-not-found")
        found: dict[str, Any] | None = json.loads(answer) if answer.strip() else None
        return found

    def wait(
        self,
        kind: str,
        name: str,
        reached: Callable[[dict[str, Any]], bool],
        tell: Callable[[dict[str, Any]], None],
        seconds: float,
    ) -> dict[str, Any]:
        """Wait until ``reached`` holds for an object, reporting its state; return it."""
        deadline = time.monotonic() + seconds
        while True:
            self.check()
            found = self.get(kind, name)
            tell(found)
            if reached(found):
                return found
            self._sleep(f"{kind} {name} is not ready", found, deadline, seconds)

    def wait_gone(self, kind: str, name: str, tell: Callable[[dict[str, Any]], None], seconds: float) -> None:
        """Wait until an object does not exist any more, reporting its state."""
        deadline = time.monotonic() + seconds
        while found := self.find(kind, name):
            self.check()
            tell(found)
            self._sleep(f"{kind} {name} is still there", found, deadline, seconds)

    def _sleep(self, message: str, found: Mapping[str, Any], deadline: float, seconds: float) -> None:
        if time.monotonic() > deadline:
            raise KubernetesError(f"{message} after {seconds:.0f} s: {summary(found)}")
        time.sleep(_POLL_SECONDS)


def condition(found: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Return a condition of an object; one with status Unknown when it does not exist yet."""
    for entry in (found.get("status") or {}).get("conditions") or ():
        if entry["type"] == kind:
            return dict(entry)
    return {"type": kind, "status": "Unknown", "reason": "", "message": "the operator has not looked at it yet"}


def holds(found: Mapping[str, Any], kind: str) -> bool:
    """Whether a condition of an object is True for its present spec."""
    observed = (found.get("status") or {}).get("observedGeneration")
    return condition(found, kind)["status"] == "True" and observed == found["metadata"]["generation"]


def summary(found: Mapping[str, Any]) -> str:
    """Describe the state of an object in a line."""
    listed = (found.get("status") or {}).get("conditions") or ()
    return (
        "; ".join(f"{entry['type']} {entry['status']} ({entry['reason']}): {entry['message']}" for entry in listed)
        or "no status"
    )


def own_cluster(program: Path, directory: Path, supervisor: Supervisor, log: Path) -> Path:
    """Start a devcluster that ends with the demo; return its kubeconfig."""
    kubeconfig = directory / "kubeconfig"
    command: list[str | Path] = [program, "up", "--foreground", "--directory", directory]
    process = supervisor.start("devcluster", command, log)

    def serves() -> bool:
        done = subprocess.run([program, "status", "--directory", directory], capture_output=True, check=False)
        return done.returncode == 0

    supervisor.wait_until(serves, process, "devcluster", log, _START_SECONDS)
    return kubeconfig
