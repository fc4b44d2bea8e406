# SPDX-License-Identifier: BSD-2-Clause
"""The cluster that the demo uses: the one that KUBECONFIG names, or a devcluster of its own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadgen.stacks.supervisor import Supervisor

_KUBECTL_SECONDS = 180.0
_START_SECONDS = 120.0
_POLL_SECONDS = 0.5


class KubernetesError(LoadgenError):
    """The cluster refused something, or something did not come about; the text says what and why."""


@dataclass(frozen=True)
class Cluster:
    """A cluster, by kubectl."""

    kubectl: Path
    """The devcluster program, which is kubectl too."""
    kubeconfig: Path
    namespace: str

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl; return what it printed, or raise KubernetesError with what it said."""
        done = subprocess.run(
            [self.kubectl, "kubectl", "--namespace", self.namespace, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_KUBECTL_SECONDS,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            check=False,
        )
        if done.returncode != 0:
            raise KubernetesError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Read an object."""
        found: dict[str, Any] = json.loads(self.run("get", kind, name, "--output", "json"))
        return found

    def patch(self, kind: str, name: str, change: Mapping[str, Any]) -> int:
        """Merge a change into an object; return the generation that it has then."""
        answer = self.run("patch", kind, name, "--type", "merge", "--patch", json.dumps(change), "--output", "json")
        return int(json.loads(answer)["metadata"]["generation"])

    def wait(
        self,
        kind: str,
        name: str,
        reached: Callable[[dict[str, Any]], bool],
        tell: Callable[[dict[str, Any]], None],
        seconds: float,
    ) -> dict[str, Any]:
        """Wait until ``reached`` holds for an object, telling of it as it changes; return it."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.get(kind, name)
            tell(found)
            if reached(found):
                return found
            if time.monotonic() > deadline:
                raise KubernetesError(f"{kind} {name} is not as it should be after {seconds:.0f} s: {summary(found)}")
            time.sleep(_POLL_SECONDS)


def condition(found: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Return a condition of an object; an unknown one when it is not there yet."""
    for one in (found.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return dict(one)
    return {"type": kind, "status": "Unknown", "reason": "", "message": "nothing yet"}


def summary(found: Mapping[str, Any]) -> str:
    """Say in a line how an object stands."""
    listed = (found.get("status") or {}).get("conditions") or ()
    return (
        "; ".join(f"{one['type']} {one['status']} ({one['reason']}): {one['message']}" for one in listed) or "no status"
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
