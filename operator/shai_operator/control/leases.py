# SPDX-License-Identifier: BSD-2-Clause
"""Locks on hosts, as Leases of the cluster: one playbook at a time runs on a host.

Two operators should never run at once. It happens when a node is cut off or a person starts a second one. A lease that
is not renewed can be taken after its time. A holder that has lost its lease is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError, ConflictError
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from shai_operator.cluster.client import Cluster

_LOGGER = logging.getLogger(__name__)
DURATION_SECONDS = 30
_RENEW_SECONDS = 10.0
_RETRY_SECONDS = 2.0


@dataclass
class _Turns:
    """The turns of this process on one host."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    now: str = ""
    """Who has the host; empty: nobody."""
    waiting: list[Callable[[str], None]] = field(default_factory=list)

    def begin(self, who: str) -> None:
        """Note who has the host, and tell those who wait for it."""
        self.now = who
        for tell in tuple(self.waiting):
            tell(who)


class Leases:
    """Takes leases in one namespace for one holder."""

    def __init__(self, cluster: Cluster, namespace: str, holder: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._holder = holder
        self._turns: dict[str, _Turns] = {}

    @contextlib.asynccontextmanager
    async def hold(self, host: str, who: str, waiting: Callable[[str], None]) -> AsyncIterator[None]:
        """Wait for a host's lock and hold it; the body is cancelled when the lock is lost.

        ``who`` says for whom and what for, to those who wait meanwhile. ``waiting`` is called with what the present
        holder said of itself, now if the lock is not free and whenever it gets another holder.
        """
        turns = self._turns.setdefault(host, _Turns())
        turns.waiting.append(waiting)
        try:
            if turns.now:
                waiting(turns.now)
            await turns.lock.acquire()
        finally:
            turns.waiting.remove(waiting)
        try:
            async with self._leased(Reference("Lease", self._namespace, _name(host)), turns, waiting):
                turns.begin(who)
                yield
        finally:
            turns.now = ""
            turns.lock.release()

    @contextlib.asynccontextmanager
    async def _leased(self, ref: Reference, turns: _Turns, waiting: Callable[[str], None]) -> AsyncIterator[None]:
        """Wait for a lease, which another process may have, and keep it."""
        while (other := await self._take(ref)) is not None:
            if turns.now != other:
                turns.begin(other)
                waiting(other)
            await asyncio.sleep(_RETRY_SECONDS)
        task = asyncio.current_task()
        renewal = asyncio.create_task(self._renew(ref, task))
        try:
            yield
        finally:
            renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewal
            await self._give_back(ref)

    async def _take(self, ref: Reference) -> str | None:
        """Take or renew a lease; return who has it instead, or None if it is taken."""
        found = await self._cluster.get(ref)
        now = datetime.now(UTC)
        if found is None:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            metadata = {"name": ref.name, "namespace": ref.namespace}
            made = await self._cluster.create({**body, "metadata": metadata, "spec": self._spec(now)})
            return "another operator" if made is None else None
        if self._held_by_another(found["spec"], now):
            return f"another operator ({found['spec']['holderIdentity']})"
        try:
            await self._cluster.replace({**found, "spec": self._spec(now)})
        except ConflictError:
            return "another operator"
        return None

    async def _renew(self, ref: Reference, task: asyncio.Task[Any] | None) -> None:
        deadline = datetime.now(UTC) + timedelta(seconds=DURATION_SECONDS)
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                if await self._take(ref) is None:
                    deadline = datetime.now(UTC) + timedelta(seconds=DURATION_SECONDS)
                    continue
            except ClusterError as error:
                _LOGGER.warning("cannot renew %s: %s", ref, error)
                if datetime.now(UTC) < deadline:
                    continue
            _LOGGER.error("%s is lost to another operator; what runs on that host is ended", ref)
            if task is not None:
                task.cancel(f"{ref} is lost")
            return

    async def _give_back(self, ref: Reference) -> None:
        with contextlib.suppress(ClusterError):  # the lease expires by itself
            found = await self._cluster.get(ref)
            if found is not None and found["spec"].get("holderIdentity") == self._holder:
                spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._cluster.replace({**found, "spec": spec})

    def _held_by_another(self, spec: dict[str, Any], now: datetime) -> bool:
        holder = spec.get("holderIdentity")
        if not holder or holder == self._holder or not spec.get("renewTime"):
            return False
        renewed = datetime.fromisoformat(str(spec["renewTime"]))
        return now < renewed + timedelta(seconds=spec.get("leaseDurationSeconds") or DURATION_SECONDS)

    def _spec(self, now: datetime) -> dict[str, Any]:
        moment = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": moment,
            "renewTime": moment,
        }


def _name(host: str) -> str:
    """Derive a valid and unique lease name from a host's name."""
    plain = re.sub(r"[^a-z0-9-]+", "-", host.lower()).strip("-")[:40]
    return f"shai-host-{plain}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"
