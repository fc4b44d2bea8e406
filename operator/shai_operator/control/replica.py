# SPDX-License-Identifier: BSD-2-Clause
"""A replica of the operator: it answers the API server always, and leads while it holds the lease.

Whoever loses the lease, because it cannot renew it or has stood still, ends everything that it did as a leader before
another replica may take the lease. Then it waits for its turn again. If something does not end in time, the process
ends, and with it its playbooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.control import authority
from shai_operator.control.backoff import Backoff
from shai_operator.control.connections import Connections
from shai_operator.control.leases import LeaseLostError, Leases, Timing
from shai_operator.control.settings import SettingsError
from shai_operator.control.sharing import shared
from shai_operator.control.webhooks import Address, Registration, await_published
from shai_operator.metrics.counted import ADMISSIONS_REJECTED

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from aiohttp import web

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.health import Health
    from shai_operator.control.leases import Term
    from shai_operator.control.settings import Settings
    from shai_operator.providers.authority import Identity

NOT_ENDED = 70
"""The exit status of a replica that could not end in time what it did as a leader."""
_PART_TO_END = 0.8
"""Of the time between the end of a term and the end of its lease."""
_TICK_SECONDS = 0.2
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Held:
    """What a leader gets."""

    cluster: Cluster
    """It writes nothing once the lease is lost."""
    leases: Leases
    root: Identity
    registration: Registration


class Replica:
    """One of the replicas. ``lead`` does what only the leader does, until it is cancelled."""

    def __init__(
        self, settings: Settings, cluster: Cluster, health: Health, lead: Callable[[Held], Awaitable[None]]
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._health = health
        self._lead = lead
        self._timing = Timing.of(settings.lease_seconds)
        self._leader = ""

    async def run(self, admission: web.Application) -> None:
        """Answer the API server, and lead when it is this replica's turn, until cancelled."""
        settings = self._settings
        root = await authority.await_loaded(self._cluster, settings.namespace, self._wait)
        tls = authority.ServerTLS(root, settings.webhook_host, settings.runtime)
        connections = Connections(admission, ADMISSIONS_REJECTED, tls=tls.context, once=True)
        async with self._listening(root) as sockets, connections.serve(sockets):
            address = Address(settings.webhook_host, sockets[0].getsockname()[1], root.certificate)
            self._wait("the API server has not been told to ask for admission")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._health.pulse(), name="pulse")
                tasks.create_task(self._publish(address), name="ready")
                tasks.create_task(self._terms(root, address), name="terms")

    @contextlib.asynccontextmanager
    async def _listening(self, root: Identity) -> AsyncIterator[list[socket.socket]]:
        host, port = self._settings.webhooks
        async with contextlib.AsyncExitStack() as stack:
            try:
                sockets = await stack.enter_async_context(shared(host, port, root.certificate, self._settings.shared))
            except OSError as error:
                raise SettingsError(
                    f"cannot serve webhooks at {host}:{port}: {os.strerror(error.errno or 0)}; end what listens there, "
                    "or choose another address (--webhooks). Replicas share it if they are of one user, with one TMPDIR"
                ) from error
            yield sockets

    def _wait(self, why: str) -> None:
        self._health.waiting = why

    async def _publish(self, address: Address) -> None:
        await await_published(self._cluster, address)
        self._health.waiting = ""

    async def _terms(self, root: Identity, address: Address) -> None:
        """Lead again and again, each time with everything new."""
        backoff = Backoff()
        leases = Leases(self._cluster, self._settings.namespace, self._settings.identity, self._timing)
        while True:
            try:
                async with leases.lead(self._note) as term:
                    self._note("this replica")
                    backoff.reset()
                    await self._term(term, root, address)
            except LeaseLostError as error:
                _LOGGER.error("%s; this replica stands by", error)  # noqa: TRY400 - what happened is no mistake
                self._leader = ""
            except ClusterError as error:
                _LOGGER.warning("this replica cannot lead now: %s; trying again", error)
                await backoff.wait()

    def _note(self, leader: str) -> None:
        if leader != self._leader:
            _LOGGER.info("%s leads", leader)
            self._leader = leader

    async def _term(self, term: Term, root: Identity, address: Address) -> None:
        cluster = self._cluster.within(term.holds)
        held = Held(
            cluster=cluster,
            leases=Leases(cluster, self._settings.namespace, self._settings.identity, self._timing),
            root=root,
            registration=Registration(cluster, address, self._settings.webhook_owner),
        )
        with _bounded(term, self._timing):
            await self._lead(held)


@contextlib.contextmanager
def _bounded(term: Term, timing: Timing) -> Iterator[None]:
    """End the process if the body goes on although its lease is lost. A thread does it: the loop may be stuck."""
    ended = threading.Event()
    limit = (timing.duration - timing.give_up) * _PART_TO_END
    watching = threading.Thread(target=_end_overdue, args=(term, limit, ended), name="overdue", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _end_overdue(term: Term, limit: float, ended: threading.Event) -> None:
    """Exit when the body has had ``limit`` seconds to end; those in which the process was stopped do not count."""
    late = 0.0
    while not ended.wait(_TICK_SECONDS):
        late = 0.0 if term.holds() else late + _TICK_SECONDS
        if late > limit:
            _LOGGER.critical("what this replica did as a leader has not ended within %.0f s; the process ends", limit)
            logging.shutdown()
            os._exit(NOT_ENDED)
