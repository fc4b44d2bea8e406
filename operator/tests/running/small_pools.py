# SPDX-License-Identifier: BSD-2-Clause
"""The smallest pools: one pipeline, one task that ends at once. Also finds their processes on this machine."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testing.cluster import ROOT, path_of
from testing.operators import NAMESPACE
from testing.waiting import until
from tests.providers.support import arguments, processes_with
from tests.running.objects import OPEN, RUNTIMES, apply, await_condition, pipeline, policy, read, resource, share, task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testing.cluster import Cluster

PATIENCE_SECONDS = 240.0
"""For conditions that need playbooks, on a busy machine."""

ROLLOUT = {
    "steps": [{"members": 1, "pauseSeconds": 1}, {"members": "100%", "pauseSeconds": 1}],
    "limits": {"minimumSessions": 0},
}
"""Without sessions, there is nothing by which a change could be judged."""


@dataclass
class Site:
    """A directory for pools on this machine, with addresses of its own."""

    base: Path
    network: str = field(default_factory=lambda: f"127.{random.randint(16, 250)}.{random.randint(0, 255)}")
    pools: int = 0

    @property
    def images(self) -> Path:
        return self.base / "images"

    def image(self, name: str = "default") -> None:
        """Make an image of the built programs, atomically."""
        made = self.base / f"making-{name}"
        shutil.copytree(ROOT / "build" / "images" / "default", made, symlinks=False)
        made.rename(self.images / name)

    def addresses(self) -> str:
        """Return a range of addresses for one more pool."""
        self.pools += 1
        return f"{self.network}.{16 * self.pools}/28"


@contextmanager
def site() -> Iterator[Site]:
    """Make a site. Processes of a failed test are ended; supervisors first, because they restart the others."""
    base = Path(tempfile.mkdtemp(prefix="shai-", dir="/var/tmp"))
    try:
        made = Site(base)
        made.images.mkdir()
        made.image()
        yield made
    finally:
        for left in [*processes_with("supervisord.conf"), *processes_with(str(base))]:
            if str(base) in arguments(left):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
        shutil.rmtree(base)


class SmallPool:
    """One pool with its definitions."""

    def __init__(self, cluster: Cluster, namespace: str, site: Site, name: str) -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.directory = site.base / name
        self._addresses = site.addresses()

    def make(self, **spec: Any) -> None:
        """Apply the pool and its definitions."""
        self.set(**spec)
        self.define()

    def set(self, **spec: Any) -> None:
        """Apply the pool."""
        usual = {
            "allowedNamespaces": {"names": [self.namespace]},
            "provider": "local",
            "directory": str(self.directory),
            "network": {"addresses": self._addresses},
            "healing": {"periodSeconds": 1, "failureThreshold": 2},
            "runtimes": RUNTIMES,
        }
        apply(self.cluster, self.namespace, resource("JailPool", self.name, **{**usual, **spec}))

    def define(self, remark: str = "") -> None:
        """Apply the definitions; another remark changes the policy."""
        apply(
            self.cluster,
            self.namespace,
            policy("open", OPEN.format(name="open") + (f"# {remark}\n" if remark else "")),
            task("once", "open"),
            pipeline("p", ["once"], "/a/**", "open", pool=self.name, rollout=ROLLOUT),
        )

    def read(self) -> dict[str, Any] | None:
        return read(self.cluster, "JailPool", "", self.name)

    def status(self) -> dict[str, Any]:
        return (self.read() or {}).get("status") or {}

    def rows(self) -> list[dict[str, Any]]:
        return self.status().get("members") or []

    def share(self) -> dict[str, Any]:
        """Return what the status has of the pool's namespace."""
        return share(self.read(), self.namespace)

    def stable(self) -> str:
        return str(self.share().get("stableRelease") or "")

    def await_condition(self, of: str, status: str, reason: str) -> dict[str, Any]:
        return await_condition(self.cluster, "JailPool", "", self.name, of, (status, reason), seconds=PATIENCE_SECONDS)

    def await_ready(self, members: int) -> None:
        """Wait until the pool has this many members and all of them serve its definitions."""

        def ready() -> bool:
            status, share = self.status(), self.share()
            rows = status.get("members") or []
            return (
                len(rows) == members == status.get("readyReplicas")
                and bool(share.get("stableRelease"))
                and not share.get("candidateRelease")
                and {(row["reason"], row.get("release")) for row in rows} <= {("Ready", share["stableRelease"])}
            )

        until(ready, f"{members} members of {self.name} are ready", PATIENCE_SECONDS)

    def await_gone(self) -> None:
        """Wait until the object does not exist any more; then nothing else of the pool may exist either."""
        until(lambda: self.read() is None, f"{self.name} is gone", PATIENCE_SECONDS)
        self.assert_nothing_left()

    def assert_nothing_left(self) -> None:
        assert processes_with(str(self.directory)) == []
        assert not list(self.directory.glob(f"{self.name}-*"))
        assert self.stored_releases() == []

    def stored_releases(self) -> list[str]:
        answer = self.cluster.request(
            "GET", path_of("v1", "configmaps", NAMESPACE), labelSelector=f"shai.dev/pool={self.name}"
        )
        return [item["metadata"]["name"] for item in answer.json()["items"]]

    def delete(self) -> None:
        """Request the deletion without waiting."""
        self.cluster.kubectl("delete", "jailpool", self.name, "--wait=false", "--ignore-not-found")

    def monitors(self, ordinal: int | None = None) -> list[int]:
        """Return the processes of the monitors."""
        return [pid for pid in self._processes(ordinal) if "bin/shai monitor" in arguments(pid)]

    def supervisors(self, ordinal: int | None = None) -> list[int]:
        """Return the processes that keep monitors running."""
        return [pid for pid in self._processes(ordinal) if "supervisor.supervisord" in arguments(pid)]

    def _processes(self, ordinal: int | None) -> list[int]:
        return processes_with(f"{self.directory}/" + ("" if ordinal is None else f"{self.name}-{ordinal}/"))


def host(name: str, address: str, port: int, secret: str, host_key: str) -> dict[str, Any]:
    """Return an entry for a pool's hosts."""
    return {
        "name": name,
        "address": address,
        "port": port,
        "privateKeySecret": {"namespace": NAMESPACE, "name": secret},
        "hostKey": host_key,
    }
