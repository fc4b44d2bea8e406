# SPDX-License-Identifier: BSD-2-Clause
"""Observations of a pool's members, beyond their rows in the status.

All of this is lost when the operator ends, and observed again after it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.monitors import apart, reading
from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorError, MonitorLateError, MonitorUnreachableError
from shai_operator.reconcile import members
from shai_operator.reconcile.members import Failure, Observation

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from shai_operator.control.authority import ClientTLS
    from shai_operator.control.jobs import Job
    from shai_operator.reconcile.members import Monitor, Sample

_LATE_SECONDS = 2.0
"""How long a round of looks waits for those that are late; what they bring is known in a later round."""
_LOGGER = logging.getLogger(__name__)


@dataclass
class Seen:
    """Observations of one member by this process."""

    configuration: str | None = None
    """The digest with which this process has provisioned the member; None: use the row in the status."""
    image: str = ""
    certificate_ends: datetime | None = None
    """The end of the certificate with which the member was provisioned; None: use the row in the status."""
    monitor: Monitor | None = None
    unreachable: str = ""
    late: int = 0
    failures: int = 0
    healed: int = 0
    """Times that the member has been provisioned since its monitor was last ready."""
    failed: Failure | None = None
    refused: dict[str, Failure] = field(default_factory=dict)
    bring_up_failed: Failure | None = None
    samples: tuple[Sample, ...] = ()
    job: tuple[str, Job] | None = None
    """The job that works on the member, and its kind."""
    looked: bool = False
    """Whether its monitor has been asked, successfully or not."""
    told: bool = False
    """Whether the log has the traceback of an error of the operator's own, which each look can repeat."""
    gone: bool = False
    """Whether the member has been removed."""
    client: MonitorClient | None = None
    connection: tuple[str, ssl.SSLContext] | None = None
    """The address and the TLS context of the client."""


class MemberObserver:
    """Observes the members of one pool. ``changed`` is called after every observation."""

    def __init__(self, tls: ClientTLS, changed: Callable[[], None]) -> None:
        self._tls = tls
        self._changed = changed
        self._seen: dict[str, Seen] = {}
        self._endpoints: dict[str, str] = {}
        self._period = 10.0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def of(self, name: str) -> Seen:
        """Return the observations of a member."""
        return self._seen.setdefault(name, Seen())

    def observations(self, rows: Mapping[str, Observation]) -> dict[str, Observation]:
        """Complete the rows of the status with observations; removed members are left out."""
        return {name: self._complete(row) for name, row in rows.items() if not self.of(name).gone}

    def look_at(self, endpoints: Mapping[str, str], period: float) -> None:
        """Observe these members (name to address and port) every ``period`` seconds from now on."""
        new = set(endpoints.items()) - set(self._endpoints.items())
        self._endpoints = dict(endpoints)
        self._period = period
        if new:
            self._wake.set()
        if self._task is None and endpoints:
            self._begin()

    def all_looked_at(self) -> bool:
        """Whether every member has been observed at least once; before that, nothing is known about their monitors."""
        return all(self.of(name).looked for name in self._endpoints)

    def look_now(self) -> None:
        """Observe all members at once, without waiting for the period."""
        self._wake.set()

    def client(self, name: str) -> MonitorClient:
        """Return the client of a member's monitor; MonitorUnreachableError when its address is not known."""
        endpoint = self.endpoint(name)
        seen = self.of(name)
        connection = endpoint, self._tls.context()
        if seen.client is None or seen.connection != connection:
            if seen.client is not None:
                _dispose(seen.client)
            seen.client = MonitorClient(address=endpoint, tls=connection[1], apart=apart.members())
            seen.connection = connection
        return seen.client

    def endpoint(self, name: str) -> str:
        """Return the address of a member's monitor; MonitorUnreachableError when it is not known."""
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise MonitorUnreachableError(f"member {name} has no address yet")
        return endpoint

    def began(self, name: str, kind: str, job: Job) -> None:
        """Store the job that works on a member from now on.

        A bringUp that it supersedes is cancelled: its tasks may never end, and are not those of the next bringUp.
        """
        seen = self.of(name)
        if seen.job is not None and seen.job[1] is not job:
            _supersede(seen)
        seen.job = kind, job

    def cancel(self, kind: str) -> None:
        """Cancel the jobs of this kind."""
        for seen in self._seen.values():
            if seen.job is not None and seen.job[0] == kind:
                seen.job[1].cancel.set()

    def dismiss(self, name: str) -> None:
        """Forget a removed member; its row in the status no longer counts."""
        seen = self._seen.pop(name, None)
        if seen is not None:
            _supersede(seen)
            if seen.client is not None:
                _dispose(seen.client)
        self._seen[name] = Seen(gone=True)

    async def close(self) -> None:
        """Stop observing."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # if it were awaited, its end could not be told from that of who closes
        for seen in self._seen.values():
            if seen.client is not None:
                await seen.client.close()

    def _complete(self, row: Observation) -> Observation:
        seen = self.of(row.name)
        job = None
        if seen.job is not None and not seen.job[1].done:
            kind, running = seen.job
            job = members.Job(kind, running.progress or members.Progress(), running.waiting)
        return replace(
            row,
            configuration=row.configuration if seen.configuration is None else seen.configuration,
            image=seen.image or row.image,
            certificate_ends=seen.certificate_ends or row.certificate_ends,
            monitor=seen.monitor,
            unreachable=seen.unreachable,
            late=seen.late,
            failures=seen.failures,
            healed=seen.healed,
            job=job,
            failed=seen.failed,
            refused=dict(seen.refused),
            bring_up_failed=seen.bring_up_failed,
            samples=seen.samples,
        )

    def _begin(self) -> None:
        if not self._closed:
            self._task = asyncio.create_task(self._run(), name="look at members")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Begin again after a task that should not have ended: without one, no member of the pool is healed."""
        if self._closed:
            return
        error = None if task.cancelled() else task.exception()
        _LOGGER.error("looking at members ended; again in %.0f s", self._period, exc_info=error)
        task.get_loop().call_later(self._period, self._begin)

    async def _run(self) -> None:
        looks: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                self._wake.clear()
                looks = {name: look for name, look in looks.items() if not look.done()}
                for name in self._endpoints.keys() - looks.keys():
                    looks[name] = asyncio.create_task(self._look(name), name=f"look at {name}")
                if looks:
                    await asyncio.wait(looks.values(), timeout=_LATE_SECONDS)
                self._changed()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._period):
                        await self._wake.wait()
        finally:
            for look in looks.values():
                look.cancel()
            await asyncio.gather(*looks.values(), return_exceptions=True)

    async def _look(self, name: str) -> None:
        seen = self.of(name)
        try:
            client = self.client(name)
            status, metrics = await client.status(), await client.metrics()
            monitor, sample = reading.monitor(status), reading.sample(status, metrics, datetime.now(UTC))
        except MonitorError as error:
            seen.monitor, seen.unreachable = None, str(error)
            seen.late = seen.late + 1 if isinstance(error, MonitorLateError) else 0
            seen.failures += 1
            return
        except Exception as error:  # what one member brings about must not end the looks at the others
            if not seen.told:
                _LOGGER.exception("looking at member %s failed", name)
            seen.told = True
            seen.monitor, seen.late = None, 0
            seen.unreachable = f"looking at it failed: {type(error).__name__}; the operator's log has more"
            seen.failures += 1
            return
        finally:
            seen.looked = True
        seen.monitor, seen.unreachable, seen.late, seen.told = monitor, "", 0, False
        if monitor.ready:
            seen.failures = seen.healed = 0
        else:
            seen.failures += 1
        if sample is not None:
            seen.samples = members.remember(seen.samples, sample)


def failure(
    reason: str,
    message: str,
    before: Failure | None,
    *,
    removal: bool = False,
    confidential: bool = False,
    passing: bool = False,
) -> Failure:
    """Return the failure that follows ``before``."""
    again = before is not None and (before.reason, before.removal) == (reason, removal)
    attempts = before.attempts + 1 if before is not None and again else 1
    return Failure(
        reason, message, datetime.now(UTC), attempts, removal=removal, confidential=confidential, passing=passing
    )


def _supersede(seen: Seen) -> None:
    kind, job = seen.job or ("", None)
    if job is not None and kind == "bringUp":
        job.cancel.set()


def _dispose(client: MonitorClient) -> None:
    task = asyncio.create_task(client.close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Task[None]] = set()
