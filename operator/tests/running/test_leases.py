# SPDX-License-Identifier: BSD-2-Clause
"""Locks on hosts, as Leases of a real API server."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.cluster.client import Cluster as Client
from shai_operator.cluster.client import ClusterError
from shai_operator.control.leases import Leases, Timing
from testing.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from shai_operator.reconcile.objects import Reference
    from testing.cluster import Cluster

HOST = "192.0.2.7"


SHORT = Timing(duration=6, give_up=3.0, renew=0.2, retry=0.1, answer=1.0)
"""Times that a test can wait for."""
LONG = Timing(duration=120, give_up=80.0, renew=0.2, retry=0.1, answer=20.0)
"""Nobody loses a lease because the machine is busy."""


@pytest.fixture
async def client(devcluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setenv("KUBECONFIG", str(devcluster.kubeconfig))
    made = Client()
    yield made
    await made.close()


class Waiter:
    """Wants a host, and keeps it until told otherwise."""

    def __init__(self, leases: Leases, who: str, host: str = HOST) -> None:
        self.heard: list[str] = []
        self.left = False
        """Whether what it did on the host has ended."""
        self.has, self.done = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(leases, who, host))

    async def _run(self, leases: Leases, who: str, host: str) -> None:
        async with leases.hold(host, who, self.heard.append):
            self.has.set()
            try:
                await self.done.wait()
            finally:
                self.left = True

    async def end(self) -> None:
        self.done.set()
        await self.task


async def test_who_waits_hears_of_each_holder(client: Client, new_namespace: Callable[[], str]) -> None:
    leases = Leases(client, new_namespace(), "this")
    first = Waiter(leases, "first")
    await first.has.wait()
    second, third = Waiter(leases, "second"), Waiter(leases, "third")
    elsewhere = Waiter(leases, "elsewhere", "192.0.2.8")
    await elsewhere.has.wait()
    await until_async(lambda: second.heard == third.heard == ["first"])
    await first.end()
    await second.has.wait()
    assert not third.has.is_set()
    await second.end()
    await third.has.wait()
    assert (first.heard, second.heard, third.heard) == ([], ["first"], ["first", "second"])
    assert elsewhere.heard == []
    await third.end()
    await elsewhere.end()


async def test_another_operator_is_named(client: Client, new_namespace: Callable[[], str]) -> None:
    namespace = new_namespace()
    there = Waiter(Leases(client, namespace, "that"), "its own affair")
    await there.has.wait()
    here = Leases(client, namespace, "this")
    first, second = Waiter(here, "first"), Waiter(here, "second")
    await until_async(lambda: first.heard == second.heard == ["another operator (that)"])
    await there.end()
    await first.has.wait()
    assert second.heard[-1] == "first"
    await first.end()
    await second.end()


async def test_giving_up_leaves_nothing_behind(client: Client, new_namespace: Callable[[], str]) -> None:
    """Neither a waiter that is cancelled nor a body that fails keeps others from the host."""
    leases = Leases(client, new_namespace(), "this")
    first = Waiter(leases, "first")
    await first.has.wait()
    second = Waiter(leases, "second")
    await until_async(lambda: second.heard == ["first"])
    second.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second.task
    await first.end()
    with pytest.raises(ValueError, match="fails"):
        async with leases.hold(HOST, "failing", pytest.fail):
            raise ValueError("it fails")
    third = Waiter(leases, "third")
    await third.has.wait()
    assert third.heard == []
    await third.end()


class Disturbed(Client):
    """An operator's client, whose requests meet a fault from a moment on, and whose clock is an hour behind."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[], Awaitable[None]] | None = None
        self.renewals = 0

    async def get(self, ref: Reference) -> dict[str, Any] | None:
        if (fault := self.fault) is not None:
            if fault is nobody_expected_this:
                self.fault = None
            await fault()
        return await super().get(ref)

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return await super().create(behind(body))

    async def replace(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.renewals += 1
        return await super().replace(behind(body))


def behind(lease: Mapping[str, Any]) -> dict[str, Any]:
    """Write a lease as a machine does whose clock is an hour behind."""
    moment = (datetime.fromisoformat(lease["spec"]["renewTime"]) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {**lease, "spec": {**lease["spec"], "acquireTime": moment, "renewTime": moment}}


@pytest.fixture
async def disturbed(devcluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Disturbed]:
    monkeypatch.setenv("KUBECONFIG", str(devcluster.kubeconfig))
    made = Disturbed()
    yield made
    await made.close()


async def silence() -> None:
    """Never answer, as a network that is cut off."""
    await asyncio.Event().wait()


async def unreachable() -> None:
    raise ClusterError("the API server was not reached")


async def nobody_expected_this() -> None:
    raise KeyError("Content-Type")


@pytest.mark.parametrize("fault", [silence, unreachable, nobody_expected_this])
async def test_who_cannot_renew_has_ended_before_another_begins(
    fault: Callable[[], Awaitable[None]], client: Client, disturbed: Disturbed, new_namespace: Callable[[], str]
) -> None:
    namespace = new_namespace()
    first = Waiter(Leases(disturbed, namespace, "this", SHORT), "first")
    await first.has.wait()
    second = Waiter(Leases(client, namespace, "that", SHORT), "second")
    await until_async(lambda: second.heard == ["another operator (this)"])
    disturbed.fault = fault
    await until_async(lambda: first.left or second.has.is_set())
    assert not second.has.is_set()
    with pytest.raises(ClusterError, match="is lost; what ran under it was ended"):
        await first.task
    await second.has.wait()
    await second.end()


async def test_a_clock_that_is_behind_makes_no_lease_end(
    client: Client, disturbed: Disturbed, new_namespace: Callable[[], str]
) -> None:
    namespace = new_namespace()
    first = Waiter(Leases(disturbed, namespace, "this", LONG), "first")
    await first.has.wait()
    second = Waiter(Leases(client, namespace, "that", LONG), "second")
    await until_async(lambda: second.heard == ["another operator (this)"])
    renewed = disturbed.renewals
    await until_async(lambda: second.has.is_set() or disturbed.renewals > renewed + 5)
    assert not second.has.is_set()
    await first.end()
    await second.has.wait()
    await second.end()


async def test_who_was_replaced_ends_at_once(
    client: Client, disturbed: Disturbed, new_namespace: Callable[[], str]
) -> None:
    """A machine that stood still for longer than its lease finds another holder when it goes on."""
    namespace = new_namespace()
    first = Waiter(Leases(disturbed, namespace, "this", SHORT), "first")
    await first.has.wait()
    (lease,) = await client.list("Lease", namespace)
    taken = {**lease["spec"], "holderIdentity": "that"}
    await until_async(lambda: disturbed.renewals > 0)
    while True:
        (lease,) = await client.list("Lease", namespace)
        try:
            await client.replace({**lease, "spec": taken})
            break
        except ClusterError:  # it was renewed in the meantime
            continue
    with pytest.raises(ClusterError, match="is lost"):
        await first.task
    (lease,) = await client.list("Lease", namespace)
    assert lease["spec"]["holderIdentity"] == "that"
