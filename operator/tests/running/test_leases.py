# SPDX-License-Identifier: BSD-2-Clause
"""Locks on hosts, as Leases of a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from shai_operator.cluster.client import Cluster as Client
from shai_operator.control.leases import Leases
from testing.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from testing.cluster import Cluster

HOST = "192.0.2.7"


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
        self.has, self.done = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(leases, who, host))

    async def _run(self, leases: Leases, who: str, host: str) -> None:
        async with leases.hold(host, who, self.heard.append):
            self.has.set()
            await self.done.wait()

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
