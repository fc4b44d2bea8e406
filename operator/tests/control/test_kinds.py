# SPDX-License-Identifier: BSD-2-Clause
"""When the definitions of the kinds are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control import kinds
from shai_operator.control.kinds import Kinds, KindsMissingError
from shai_operator.reconcile.objects import GROUP, PLURALS

if TYPE_CHECKING:
    from shai_operator.cluster.client import Cluster


class World:
    """An API server that serves some kinds; ``seen`` is when the last object changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.served = set(PLURALS.values())
        self.seen, self.lists = 1.0, 0
        self.kinds = Kinds(cast("Cluster", self), lambda: self.seen)
        monkeypatch.setattr(kinds, "_TRUST_SECONDS", -1.0)

    async def list(self, kind: str) -> list[dict[str, Any]]:
        assert kind == "CustomResourceDefinition"
        self.lists += 1
        return [{"metadata": {"name": f"{plural}.{GROUP}"}} for plural in self.served]


async def test_they_are_read_again_only_after_something_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    for _ in range(20):
        await world.kinds.check(changing=True)
    assert world.lists == 1
    world.seen = 2.0
    await world.kinds.check(changing=True)
    assert world.lists == 2


async def test_a_kind_that_goes_is_found_with_the_events_of_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    await world.kinds.check(changing=True)
    world.served.remove("policies")
    world.seen = 2.0
    for _ in range(2):  # and it is not believed to be there again
        with pytest.raises(KindsMissingError, match="Policy"):
            await world.kinds.check(changing=True)
