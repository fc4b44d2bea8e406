# SPDX-License-Identifier: BSD-2-Clause
"""How often the definitions of a namespace are checked while they change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from shai_operator.control.loop import Loop
from shai_operator.control.verdicts import Verdicts
from shai_operator.monitors.validator import Answer
from shai_operator.reconcile.dependents import DEFINITIONS
from shai_operator.reconcile.objects import Inventory, Reference
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.monitors.validator import Validator

SPACE = Reference(DEFINITIONS, "", "search")


class Checks:
    """A validator that finds nothing, and takes its time."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def check(self, objects: list[object], *, alone: bool) -> Answer:
        assert alone
        self.asked.append(len(objects))
        await asyncio.sleep(0.05)
        return Answer((), {})


async def test_a_namespace_that_was_just_checked_waits_and_is_checked_in_the_end() -> None:
    checks, inventory = Checks(), Inventory()
    loop = Loop(inventory, cast("Executor", None))
    verdicts = Verdicts(loop, cast("Validator", checks), cast("ReleaseStore", None))
    inventory.put(resource("Policy", "first"))
    assert await verdicts.reconcile(SPACE) is None
    inventory.put(resource("Policy", "second"))
    wait = await verdicts.reconcile(SPACE)
    assert wait is not None
    assert wait > 0
    assert checks.asked == [1]
    while (wait := await verdicts.reconcile(SPACE)) is not None:
        await asyncio.sleep(wait)
    assert checks.asked == [1, 2]


async def test_another_namespace_does_not_wait() -> None:
    checks, inventory = Checks(), Inventory()
    verdicts = Verdicts(Loop(inventory, cast("Executor", None)), cast("Validator", checks), cast("ReleaseStore", None))
    for space in ("search", "other"):
        assert await verdicts.reconcile(Reference(DEFINITIONS, "", space)) is None
    assert checks.asked == [0, 0]
