# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from typing import Any

import pytest

from shai_operator.reconcile.effects import LISTED, Effect


def flow(pipeline: str, flows: int, **more: Any) -> dict[str, Any]:
    return {"pipeline": pipeline, "task": "worker", "access": "read", "flows": flows, **more}


def effect(**comparison: Any) -> Effect:
    return Effect("old", "new", comparison)


@pytest.mark.parametrize(
    ("pipelines", "share"),
    [({"a", "b"}, (60, 100)), ({"a"}, (20, 60)), ({"b"}, (50, 90)), (set(), (10, 50))],
)
def test_flows_of_a_pipeline_that_goes_do_not_count(pipelines: set[str], share: tuple[int, int]) -> None:
    closed = [flow("a", 10), flow("b", 40)]  # ten more are closed, but the monitor does not list them
    assert effect(flowsBefore=100, closedTotal=60, closed=closed).closed_share(pipelines) == share


def test_nothing_open_is_nothing_closed() -> None:
    assert effect().closed_share({"a"}) == (0, 0)


def test_a_pipeline_is_told_its_own_flows_within_the_schema() -> None:
    written = effect(
        **{"from": "aa", "to": "bb"},
        closed=[flow("a", 2, unknown=1), flow("b", 1), *(flow("a", 1) for _ in range(30))],
        closedTotal=33,
        users=[f"u{number}" for number in range(30)],
        usersTotal=30,
    ).of_pipeline("a")
    assert (written["from"], written["to"], written["closedTotal"], written["usersTotal"]) == ("aa", "bb", 33, 30)
    assert len(written["closed"]) == len(written["users"]) == LISTED
    assert written["closed"][0] == {"task": "worker", "access": "read", "flows": 2}
    assert written["opened"] == []


def test_what_choices_would_open_is_told() -> None:
    chosen = effect(openedTotal=1, wouldOpen=[flow("a", 7), flow("b", 2)], wouldOpenTotal=9)
    assert chosen.summary().endswith(", and lets principals open 9 more by choosing policies")
    written = chosen.of_pipeline("a")
    assert written["wouldOpenTotal"] == 9
    assert [listed["flows"] for listed in written["wouldOpen"]] == [7]
    assert "choosing" not in effect(openedTotal=1).summary()


def test_what_is_not_known_of_choices_is_told() -> None:
    asking = [{"pipeline": "a", "policies": ["joint", "ids"]}, {"pipeline": "b", "policies": ["joint", "x", "y"]}]
    found = effect(openedTotal=1, wouldOpenNotKnown=asking)
    assert found.of_pipeline("b")["wouldOpenNotKnown"] == ["joint", "x", "y"]
    assert found.of_pipeline("c")["wouldOpenNotKnown"] == []
    said = found.summary()
    assert said.endswith("these policies ask for those of other documents: ids, joint, x and 1 more")
    assert "not known" not in effect(openedTotal=1, wouldOpenNotKnown=[]).summary()


def test_what_is_not_denied_any_more_is_told() -> None:
    tried = {
        "kind": "Pipeline",
        "name": "a",
        "from": "shai",
        "to": "audit",
        "effect": "accesses are not denied any more",
    }
    other = {**tried, "name": "b"}
    fresh = {"kind": "Policy", "name": "p", "from": "", "to": "Audit", "effect": "what it forbids is not denied"}
    changed = effect(modes=[tried, other, {**fresh, "unknown": 1}], modesTotal=5)
    assert changed.summary().endswith(
        "; Pipeline a changes from shai to mode audit: accesses are not denied any more"
        "; Pipeline b changes from shai to mode audit: accesses are not denied any more"
        "; Policy p is new in mode Audit: what it forbids is not denied; 2 other modes change"
    )
    written = changed.of_pipeline("a")
    assert (written["modes"], written["modesTotal"]) == ([tried, fresh], 5)
    assert "mode" not in effect(openedTotal=1).summary()
