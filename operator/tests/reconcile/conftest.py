# SPDX-License-Identifier: BSD-2-Clause
"""Every status that the tests here see has only conditions and reasons that its kind's definition lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crds import kinds
from shai_operator.reconcile import conditions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from shai_operator.reconcile.conditions import Condition
    from shai_operator.reconcile.objects import Object

KINDS = {kind.kind: kind for kind in kinds.ALL}


@pytest.fixture(autouse=True)
def listed_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each rendered condition compared with the definition of its kind."""
    render = conditions.render

    def compared(
        obj: Object, wanted: Sequence[Condition], now: datetime, observed: int | None = None
    ) -> list[dict[str, Any]]:
        kind = KINDS[obj["kind"]]
        for condition in wanted:
            where = f"crds/kinds: add it to the conditions of {kind.kind}"
            assert condition.type in kind.conditions, f"{condition.type} is not listed in {where}"
            assert condition.reason in kind.reasons(condition.type), (
                f"reason {condition.reason} of {condition.type} is not listed in {where}, "
                "then run .venv/bin/python -m crds.generate, and say in docs/operations.md what to do about it"
            )
        return render(obj, wanted, now, observed)

    monkeypatch.setattr(conditions, "render", compared)
