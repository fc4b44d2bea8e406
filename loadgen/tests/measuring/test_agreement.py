# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.measuring import agreement
from loadgen.measuring.measurement import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterable

PEOPLE: Any = SimpleNamespace(people=["alice"], queries=["one", "two"])


@pytest.fixture
def agree(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns what is said of a member and a twin whose searches return these titles, again and again."""

    def said(member: Iterable[str], twin: Iterable[str]) -> bool:
        answers = {"member": itertools.cycle(member), "twin": itertools.cycle(twin)}

        def search(front_end: str, *_: Any) -> dict[str, Any]:
            return {"results": [{"title": title} for title in next(answers[front_end])]}

        monkeypatch.setattr(agreement, "search_once", search)
        confined, other = (SimpleNamespace(front_end=name) for name in answers)
        return agreement.find_the_same(confined, other, PEOPLE)  # type: ignore[arg-type]  # all that is asked for

    return said


def test_a_twin_may_find_more(agree: Any) -> None:
    assert agree(["ab"], ["abc"])


def test_a_twin_that_finds_less_is_an_error(agree: Any) -> None:
    with pytest.raises(MeasurementError, match="finds 'b' and a twin on its data does not"):
        agree(["ab"], ["ac"])


def test_nothing_is_said_of_documents_that_are_picked_at_random(agree: Any) -> None:
    assert not agree(["ab"], ["ac", "ad"])
