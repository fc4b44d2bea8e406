# SPDX-License-Identifier: BSD-2-Clause
"""Locks on hosts, as Leases of the cluster: one playbook at a time runs on a host.

Two operators should never run at once. It happens when a node is cut off or a person starts a second one. A lease that
is not renewed can be taken after `DURATION_SECONDS`. A holder that cannot renew its lease, for whatever reason, is
cancelled `DURATION_SECONDS - _GIVE_UP_SECONDS` before that. As in client-go's leader election, nobody compares clocks:
the holder counts from before its last request that succeeded, and the others from when they first saw what it wrote,
each by its own monotonic clock. A holder whose process or machine stands still finds out when it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError, ConflictError
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from shai_operator.cluster.client import Cluster

_LOGGER = logging.getLogger(__name__)
DURATION_SECONDS = 30
"""Time without a renewal after which another operator takes the lease."""
_GIVE_UP_SECONDS = 20.0
"""Time without a renewal after which a holder is cancelled; in the rest of the lease its playbook ends."""
_RENEW_SECONDS = 5.0
_RETRY_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
"""Time for one attempt to take or renew a lease. The client's own limit is for each request, and longer."""


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


class _Seen:
    """What a process has seen of another one's lease, and since when."""

    def __init__(self) -> None:
        self._spec: dict[str, Any] = {}
        self._since = 0.0

    def has_ended(self, spec: dict[str, Any]) -> bool:
        """Note the present content of a lease, and return whether nobody has renewed it for its whole time."""
        if spec != self._spec:
            self._spec, self._since = spec, _monotonic()
        return _monotonic() - self._since > (spec.get("leaseDurationSeconds") or DURATION_SECONDS)


class Leases:
    """Takes leases in one namespace for one holder."""

    def __init__(self, cluster: Cluster, namespace: str, holder: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._holder = holder
        self._turns: dict[str, _Turns] = {}

    @contextlib.asynccontextmanager
    async def hold(self, host: str, who: str, waiting: Callable[[str], None]) -> AsyncIterator[None]:
        """Wait for a host's lock and hold it. When the lock is lost, the body is cancelled, and ClusterError follows.

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
        seen = _Seen()
        asked = _monotonic()
        while (other := await self._take(ref, seen)) is not None:
            if turns.now != other:
                turns.begin(other)
                waiting(other)
            await asyncio.sleep(_RETRY_SECONDS)
            asked = _monotonic()
        try:
            async with asyncio.timeout_at(asked + _GIVE_UP_SECONDS) as limit, self._renewing(ref, limit):
                yield
        except TimeoutError as error:
            if limit.expired():
                raise ClusterError(f"{ref} is lost; what ran on that host was ended") from error
            raise
        finally:
            await self._give_back(ref)

    @contextlib.asynccontextmanager
    async def _renewing(self, ref: Reference, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Renew a lease meanwhile. Whatever ends the renewals, the limit is reached then."""
        renewal = asyncio.create_task(self._renew(ref, limit))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.wait([renewal])
            if not renewal.cancelled() and renewal.exception() is not None:
                _LOGGER.error("%s was not renewed any more", ref, exc_info=renewal.exception())

    async def _take(self, ref: Reference, seen: _Seen | None = None) -> str | None:
        """Take or renew a lease; return who has it instead, or None if it is taken.

        ``seen`` is what was seen of it before. Without it, a lease that another process wrote last is not taken.
        ClusterError when the API server does not answer in time.
        """
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._try_to_take(ref, seen)
        except TimeoutError as error:
            raise ClusterError(f"take {ref}: the API server did not answer within {_ANSWER_SECONDS:.0f} s") from error

    async def _try_to_take(self, ref: Reference, seen: _Seen | None) -> str | None:
        found = await self._cluster.get(ref)
        if found is None:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            metadata = {"name": ref.name, "namespace": ref.namespace}
            made = await self._cluster.create({**body, "metadata": metadata, "spec": self._spec()})
            return "another operator" if made is None else None
        holder = found["spec"].get("holderIdentity")
        if holder and holder != self._holder and (seen is None or not seen.has_ended(found["spec"])):
            return f"another operator ({holder})"
        try:
            await self._cluster.replace({**found, "spec": self._spec()})
        except ConflictError:
            return "another operator"
        return None

    async def _renew(self, ref: Reference, limit: asyncio.Timeout) -> None:
        """Renew a lease again and again, and move the limit each time; return when the lease is lost."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            asked = _monotonic()
            try:
                lost = await self._take(ref) is not None
            except ClusterError as error:
                _LOGGER.warning("cannot renew %s: %s", ref, error)
                continue
            if not limit.expired():  # otherwise the body is ending, and needs the lease for that
                limit.reschedule(asked if lost else asked + _GIVE_UP_SECONDS)
            if lost:
                return

    async def _give_back(self, ref: Reference) -> None:
        # Otherwise the lease ends by itself.
        with contextlib.suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._try_to_give_back(ref)

    async def _try_to_give_back(self, ref: Reference) -> None:
        found = await self._cluster.get(ref)
        if found is not None and found["spec"].get("holderIdentity") == self._holder:
            spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._cluster.replace({**found, "spec": spec})

    def _spec(self) -> dict[str, Any]:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": moment,
            "renewTime": moment,
        }


def _monotonic() -> float:
    return asyncio.get_running_loop().time()


def _name(host: str) -> str:
    """Derive a valid and unique lease name from a host's name."""
    plain = re.sub(r"[^a-z0-9-]+", "-", host.lower()).strip("-")[:40]
    return f"shai-host-{plain}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"
