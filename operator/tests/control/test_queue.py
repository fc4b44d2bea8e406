# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shai_operator.cluster.client import ConflictError
from shai_operator.control.queue import LAST_RETRY_SECONDS, REST, WorkQueue
from shai_operator.metrics.counted import RECONCILE_ERRORS
from shai_operator.reconcile.objects import Reference
from testing.waiting import until_async
from tests.control.queues import idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    import pytest


def ref(name: str) -> Reference:
    return Reference("Policy", "default", name)


@contextlib.asynccontextmanager
async def working(
    reconcile: Callable[[Reference], Coroutine[Any, Any, float | None]], workers: int = 2
) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(reconcile, workers)
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_adding_often_is_looking_once() -> None:
    looked = Counter[Reference]()

    async def look(obj: Reference) -> None:
        looked[obj] += 1

    async with working(look) as queue:
        for _ in range(10):
            queue.add(ref("a"))
        await until_async(lambda: idle(queue))
    assert looked == {ref("a"): 1}


async def test_adding_while_it_is_looked_at_is_one_more_look_and_never_two_at_a_time() -> None:
    gate, started = asyncio.Event(), asyncio.Event()
    inside, looks = 0, 0

    async def look(_: Reference) -> None:
        nonlocal inside, looks
        inside += 1
        looks += 1
        assert inside == 1
        started.set()
        await gate.wait()
        inside -= 1

    async with working(look, workers=4) as queue:
        queue.add(ref("a"))
        await started.wait()
        for _ in range(5):
            queue.add(ref("a"))
        gate.set()
        await until_async(lambda: looks == 2 and idle(queue))


async def test_one_slow_thing_does_not_hold_up_the_others() -> None:
    forever = asyncio.Event()
    looked: list[Reference] = []

    async def look(obj: Reference) -> None:
        if obj == ref("slow"):
            await forever.wait()
        looked.append(obj)

    async with working(look) as queue:
        for name in ("slow", "a", "b", "c"):
            queue.add(ref(name))
        await until_async(lambda: len(looked) == 3)


async def test_an_object_that_keeps_the_loop_leaves_most_of_the_time_to_others() -> None:
    kept: list[float] = []

    async def look(obj: Reference) -> None:
        began = time.perf_counter()
        time.sleep(0.02)  # noqa: ASYNC251 - keeps the loop, as a decision about many objects
        if len(kept) < 3:
            queue.add(obj)
        kept.append(time.perf_counter() - began)

    began = time.perf_counter()
    async with working(look) as queue:
        queue.add(ref("large"))
        await until_async(lambda: len(kept) == 4)
    assert time.perf_counter() - began >= sum(kept[:3]) * (1 + REST)


async def test_waiting_is_no_work_to_rest_from(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0  # else a busy machine, which stops this process for a moment, makes any look work
    monkeypatch.setattr("shai_operator.control.busy.time.perf_counter", lambda: now)
    looks = 0

    def pass_time() -> None:
        nonlocal now
        now += 100

    async def look(_: Reference) -> None:
        nonlocal looks
        looks += 1
        asyncio.get_running_loop().call_soon(pass_time)
        await asyncio.sleep(0.2)

    async with working(look) as queue:
        for _ in range(2):
            queue.add(ref("a"))
            await until_async(lambda: idle(queue))
            assert queue._resting == {}  # noqa: SLF001
    assert looks == 2


async def test_a_failure_is_repeated_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shai_operator.control.queue.FIRST_RETRY_SECONDS", 0.001)
    tries = Counter[Reference]()

    async def look(obj: Reference) -> None:
        tries[obj] += 1
        if obj == ref("bad") and tries[obj] < 4:
            raise ValueError("not yet")

    async with working(look) as queue:
        queue.add(ref("bad"))
        queue.add(ref("good"))
        await until_async(lambda: tries[ref("bad")] == 4)
    assert tries[ref("good")] == 1


async def test_a_conflict_is_no_fault_of_the_operators(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody was faster: the object is reconciled again, and nobody is called by a log or a metric."""
    monkeypatch.setattr("shai_operator.control.queue.FIRST_RETRY_SECONDS", 0.001)
    tries = 0
    before = RECONCILE_ERRORS.labels("Policy")._value.get()  # noqa: SLF001

    async def look(_: Reference) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConflictError("finalizer JailPool/a: the object has been modified")

    with caplog.at_level("INFO", "shai_operator.control.queue"):
        async with working(look) as queue:
            queue.add(ref("a"))
            await until_async(lambda: tries == 3 and idle(queue))
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert not any(record.exc_info for record in caplog.records)
    assert RECONCILE_ERRORS.labels("Policy")._value.get() == before  # noqa: SLF001


def test_delays_grow_and_stay_bounded() -> None:
    async def look(_: Reference) -> None: ...

    queue = WorkQueue(look, 1)
    delays = [queue._delay(ref("a")) for _ in range(2000)]  # noqa: SLF001
    assert delays[0] <= 0.5 < delays[3]
    assert max(delays) <= LAST_RETRY_SECONDS


async def test_the_earlier_of_two_times_counts() -> None:
    looked: list[Reference] = []

    async def look(obj: Reference) -> None:
        looked.append(obj)

    async with working(look) as queue:
        queue.add_after(ref("a"), 0.01)
        queue.add_after(ref("a"), 3600)
        queue.add_after(ref("b"), 3600)
        queue.add_after(ref("b"), 0.01)
        await until_async(lambda: len(looked) == 2)


async def test_a_wanted_time_is_kept() -> None:
    looks = 0

    async def look(_: Reference) -> float | None:
        nonlocal looks
        looks += 1
        return 0.001 if looks < 3 else None

    async with working(look) as queue:
        queue.add(ref("a"))
        await until_async(lambda: looks == 3)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_whatever_is_added_is_looked_at_afterwards(steps: list[tuple[str, int]], workers: int) -> None:
    """The last reconciliation of each object starts after the object was added for the last time."""

    async def run() -> None:
        clock = 0
        added: dict[Reference, int] = {}
        looked: dict[Reference, int] = {}

        async def look(obj: Reference) -> None:
            nonlocal clock
            clock += 1
            begun = clock
            await asyncio.sleep(0)
            looked[obj] = begun

        async with working(look, workers) as queue:
            for name, yields in steps:
                clock += 1
                added[ref(name)] = clock
                queue.add(ref(name))
                for _ in range(yields):
                    await asyncio.sleep(0)
            await until_async(lambda: idle(queue))
        assert {obj for obj in added if looked[obj] <= added[obj]} == set()

    asyncio.run(run())


async def test_namespaces_take_turns_however_many_objects_one_has() -> None:
    looked: list[Reference] = []

    async def look(obj: Reference) -> None:
        looked.append(obj)

    async with working(look, workers=1) as queue:
        for number in range(1000):
            queue.add(Reference("TaskRun", "many", str(number)))
        mine = [Reference("Task", "few", str(number)) for number in range(3)]
        for obj in (*mine, Reference("JailPool", "", "one")):
            queue.add(obj)
        await until_async(lambda: idle(queue))
    assert len(looked) == 1004
    assert [obj for obj in looked[:10] if obj.namespace == "few"] == mine
    assert Reference("JailPool", "", "one") in looked[:4]
