# SPDX-License-Identifier: BSD-2-Clause
"""What is reconciled when an object is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from shai_operator.control.loop import Loop
from shai_operator.reconcile.objects import Inventory, Reference
from tests.reconcile.builders import FOR_SEARCH, resource

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor


def test_a_status_that_the_operator_has_written_itself_is_news_when_it_is_seen() -> None:
    """The answer to the writing is in the inventory before the watch delivers it."""
    loop = Loop(Inventory(), cast("Executor", None))
    pool = resource("JailPool", "default", FOR_SEARCH)
    loop.take(resource("Pipeline", "syse", {"pool": "default"}))
    loop.take(pool)
    loop.redefined.clear()
    loop.take(pool)
    assert loop.redefined == {}
    written = {**pool, "status": {"namespaces": [{"name": "search", "uid": "u", "stableRelease": "shai-release-0"}]}}
    loop.inventory.put(written)
    loop.take(written)
    assert list(loop.redefined) == ["search"]
    assert loop.inventory.get(Reference("JailPool", "", "default")) == written
