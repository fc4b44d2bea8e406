# SPDX-License-Identifier: BSD-2-Clause
"""Locks as Leases of the cluster: one replica of the operator leads, and one playbook at a time runs on a host.

A lease that is not renewed can be taken after its duration. A holder that cannot renew its lease, for whatever reason,
is cancelled a third of the duration before that. As in client-go's leader election, nobody compares clocks: the holder
counts from before its last request that succeeded, and the others from when they first saw what it wrote, each by its
own monotonic clock. A holder whose process or machine stands still finds out when it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError, ConflictError
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from shai_operator.cluster.client import Cluster

_LOGGER = logging.getLogger(__name__)
LEADER = "shai-operator"
"""The lease of the replica that leads."""
DURATION_SECONDS = 30


@dataclass(frozen=True)
class Timing:
    """The times of leases, in seconds."""

    duration: int
    """Time without a renewal after which another operator takes a lease."""
    give_up: float
    """Time without a renewal after which a holder is cancelled; in the rest of the lease, what it did ends."""
    renew: float
    """Time between renewals."""
    retry: float
    """Time between looks at another's lease."""
    answer: float
    """Time for one attempt to take or renew a lease. The client's own limit is for each request, and longer."""

    @classmethod
    def of(cls, duration: int = DURATION_SECONDS) -> Timing:
        """Return times that fit a duration."""
        return cls(duration, give_up=duration * 2 / 3, renew=duration / 6, retry=duration / 15, answer=duration / 6)


class Term:
    """The time for which a lease is held. Its end moves with each renewal. Thread-safe."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit

    def holds(self) -> bool:
        """Whether the lease is still held, by this process' clock, which counts while the process is stopped."""
        ends = self._limit.when()
        return not self._limit.expired() and ends is not None and time.monotonic() < ends


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
            self._spec, self._since = spec, time.monotonic()
        return time.monotonic() - self._since > (spec.get("leaseDurationSeconds") or DURATION_SECONDS)


class LeaseLostError(ClusterError):
    """A lease could not be renewed or was taken by another; what ran under it was cancelled."""


class Leases:
    """Takes leases in one namespace for one holder."""

    def __init__(self, cluster: Cluster, namespace: str, holder: str, timing: Timing | None = None) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._holder = holder
        self._timing = timing or Timing.of()
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

        def tell(other: str) -> None:
            if turns.now != other:
                turns.begin(other)
                waiting(other)

        try:
            async with self._leased(Reference("Lease", self._namespace, _name(host)), tell):
                turns.begin(who)
                yield
        finally:
            turns.now = ""
            turns.lock.release()

    @contextlib.asynccontextmanager
    async def lead(self, waiting: Callable[[str], None]) -> AsyncIterator[Term]:
        """Wait until this replica leads, and lead. If it loses that, the body is cancelled; LeaseLostError follows.

        ``waiting`` is called with who leads, at each look. ClusterError when the API server does not answer.
        """
        async with self._leased(Reference("Lease", self._namespace, LEADER), waiting) as term:
            yield term

    @contextlib.asynccontextmanager
    async def _leased(self, ref: Reference, waiting: Callable[[str], None]) -> AsyncIterator[Term]:
        """Wait for a lease, which another process may have, and keep it."""
        seen = _Seen()
        asked = time.monotonic()
        while (other := await self._take(ref, seen)) is not None:
            waiting(other)
            await asyncio.sleep(self._timing.retry)
            asked = time.monotonic()
        try:
            async with asyncio.timeout_at(asked + self._timing.give_up) as limit, self._renewing(ref, limit):
                yield Term(limit)
        except TimeoutError as error:
            if limit.expired():
                raise LeaseLostError(f"{ref} is lost; what ran under it was ended") from error
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
            async with asyncio.timeout(self._timing.answer):
                return await self._try_to_take(ref, seen)
        except TimeoutError as error:
            raise ClusterError(
                f"take {ref}: the API server did not answer within {self._timing.answer:.0f} s"
            ) from error

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
            await asyncio.sleep(self._timing.renew)
            asked = time.monotonic()
            try:
                lost = await self._take(ref) is not None
            except ClusterError as error:
                _LOGGER.warning("cannot renew %s: %s", ref, error)
                continue
            if not limit.expired():  # otherwise the body is ending, and needs the lease for that
                limit.reschedule(asked if lost else asked + self._timing.give_up)
            if lost:
                return

    async def _give_back(self, ref: Reference) -> None:
        # Otherwise the lease ends by itself.
        with contextlib.suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(self._timing.answer):
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
            "leaseDurationSeconds": self._timing.duration,
            "acquireTime": moment,
            "renewTime": moment,
        }


def _name(host: str) -> str:
    """Derive a valid and unique lease name from a host's name."""
    plain = re.sub(r"[^a-z0-9-]+", "-", host.lower()).strip("-")[:40]
    return f"shai-host-{plain}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"
