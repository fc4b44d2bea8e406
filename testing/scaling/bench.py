# SPDX-License-Identifier: BSD-2-Clause
"""One API server, one operator, and the measurements of its steps."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from testing.cluster import path_of
from testing.scaling import processes
from testing.scaling.definitions import API, NAMESPACE, POOL
from testing.scaling.report import Step
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from testing.cluster import Cluster
    from testing.operators import Operator

PATIENCE_SECONDS = 1800.0
REQUESTS = "shai_operator_api_requests_total"
_APART = frozenset({"Lease", "Secret"})


class Bench:
    """Measures steps; ``data`` is the directory of the API server, which its process names."""

    def __init__(self, world: str, cluster: Cluster, operator: Operator, data: Path, size: tuple[int, int]) -> None:
        self.world, self.cluster, self.operator = world, cluster, operator
        self.policies, self.pipelines = size
        self.steps: list[Step] = []
        self._data = data

    def measure(self, step: str, act: Callable[[], object], done: Callable[[], bool]) -> Step:
        """Measure the time from ``act`` until ``done``, and count the operator's requests until it is quiet."""
        before, process, start = self._used(), self.operator.process.pid, time.monotonic()
        asked = requests(self.operator)
        act()
        sent, kubectl = time.monotonic() - start, processes.children_seconds() - before["kubectl"]
        until(done, step, PATIENCE_SECONDS)
        took = time.monotonic() - start
        self.operator.await_quiet()
        after, counted = self._used(), requests(self.operator)
        if self.operator.process.pid != process:
            asked, before["operator"], before["validator"] = {}, 0.0, 0.0  # another process, which counts from 0
        found = Step(
            world=self.world,
            step=step,
            sent_seconds=round(sent, 2),
            done_seconds=round(took, 2),
            operator_cpu_seconds=round(after["operator"] - before["operator"], 2),
            validator_cpu_seconds=round(after["validator"] - before["validator"], 2),
            server_cpu_seconds=round(after["server"] - before["server"], 2),
            kubectl_cpu_seconds=round(kubectl, 2),
            megabytes=round(self.operator.most_resident_megabytes()),
            load=round(processes.load(), 1),
            requests={
                key: counted[key] - asked.get(key, 0) for key in sorted(counted) if counted[key] > asked.get(key, 0)
            },
        )
        self.steps.append(found)
        return found

    def _used(self) -> dict[str, float]:
        return {
            "operator": self.operator.cpu_seconds(),
            "validator": processes.cpu_seconds("validate --socket", self.operator.process.pid),
            "server": processes.cpu_seconds(f"serve --directory {self._data}"),
            "kubectl": processes.children_seconds(),
        }

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects as a user does."""
        apply(self.cluster, *objects)

    def defined(self) -> bool:
        """Whether every policy is accepted and has its revision, and every pipeline has been judged."""
        return (
            len(self._with("pipelines", "Accepted", "True", "False")) == self.pipelines
            and len(self._with("policies", "Accepted")) == self.policies
            and len(self._items("policyrevisions")) == self.policies
        )

    def accepted(self) -> bool:
        """Whether every pipeline is accepted, which needs a revision of each of its policies."""
        return len(self._with("pipelines", "Accepted")) == self.pipelines and self.defined()

    def reconciled(self) -> bool:
        """Whether the operator has reconciled as many objects as exist, since it was started."""
        return self.operator.metric("shai_operator_reconcile_seconds_count") >= self.policies + self.pipelines

    def revision(self, policy: int) -> int:
        """Return the number of a policy's last revision."""
        found = self.cluster.request("GET", path_of(API, "policies", NAMESPACE, f"policy-{policy}")).json()
        return int((found.get("status") or {}).get("latestRevision") or 0)

    def everywhere(self, members: int, release: str = "") -> str:
        """Return the release that all members have in force, if it is another one than ``release``; else nothing."""
        status = self.cluster.request("GET", path_of(API, "jailpools", "", POOL)).json().get("status") or {}
        shares, rows = status.get("namespaces") or [{}], status.get("members") or ()
        stable = str(shares[0].get("stableRelease") or "")
        ready = [row for row in rows if row.get("release") == stable and row["reason"] == "Ready"]
        return stable if len(ready) == members and stable != release else ""

    def _items(self, plural: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.cluster.request("GET", path_of(API, plural, NAMESPACE)).json()["items"]
        return items

    def _with(self, plural: str, kind: str, *wanted: str) -> list[dict[str, Any]]:
        return [
            item
            for item in self._items(plural)
            if (item.get("status") or {}).get("observedGeneration") == item["metadata"]["generation"]
            and any(
                held["type"] == kind and held["status"] in (wanted or ("True",))
                for held in item["status"]["conditions"]
            )
        ]


def apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    """Apply objects with kubectl."""
    cluster.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))


def requests(operator: Operator) -> dict[str, int]:
    """Return the number of the operator's requests, by verb and kind."""
    return {
        f"{labels['verb']} {labels['kind']}": int(value)
        for labels, value in operator.samples(REQUESTS)
        if labels["kind"] not in _APART
    }
