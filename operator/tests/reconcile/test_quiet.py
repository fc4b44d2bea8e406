# SPDX-License-Identifier: BSD-2-Clause
"""What is news in a status is written at once; figures that move are not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile.quiet import COUNTER_SECONDS, PROGRESS_SECONDS, patience

FIELDS = ("message", "reason", "members", "sessions", "progress", "done")
Statuses = st.dictionaries(
    st.sampled_from(FIELDS),
    st.sampled_from(["", "Running", 1, []])
    | st.lists(st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["Running", 1, 2]), max_size=2), max_size=2)
    | st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["Running", 1, 2]), max_size=2),
    max_size=3,
)


def pool() -> dict[str, Any]:
    progress = {"play": "Install", "task": "Copy", "done": 1, "total": 9}
    return {
        "readyReplicas": 1,
        "members": [{"name": "m-0", "reason": "Ready", "message": "", "sessions": 4, "progress": progress}],
        "namespaces": [
            {"name": "n", "rollout": {"reason": "Progressing", "message": "1 of 3", "members": 1, "step": 1}}
        ],
        "conditions": [{"type": "Ready", "status": "False", "reason": "Progressing", "message": "1 of 3"}],
    }


def changed(status: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(status)
    *way, last = [int(key) if key.isdecimal() else key for key in place.split()]
    found: Any = made
    for key in way:
        found = found[key]
    if value is None:
        del found[last]
    else:
        found[last] = value
    return made


@pytest.mark.parametrize(
    ("place", "value", "seconds"),
    [
        ("members 0 sessions", 5, COUNTER_SECONDS),
        ("members 0 progress done", 2, PROGRESS_SECONDS),
        ("members 0 progress task", "Start", PROGRESS_SECONDS),
        ("namespaces 0 rollout message", "2 of 3", PROGRESS_SECONDS),
        ("namespaces 0 rollout members", 2, PROGRESS_SECONDS),
        ("conditions 0 message", "2 of 3", PROGRESS_SECONDS),
        ("members 0 progress play", "Begin", 0),
        ("members 0 progress", None, 0),
        ("members 0 message", "is away", 0),
        ("members 0 reason", "Unreachable", 0),
        ("members", [], 0),
        ("namespaces 0 rollout step", 2, 0),
        ("namespaces 0 rollout reason", "Inconclusive", 0),
        ("conditions 0 reason", "Complete", 0),
        ("conditions 0 status", "True", 0),
        ("readyReplicas", 2, 0),
        ("readyReplicas", 1, None),
    ],
)
def test_what_is_news_in_the_status_of_a_pool(place: str, value: Any, seconds: float | None) -> None:
    assert patience("JailPool", pool(), changed(pool(), place, value)) == seconds


def test_the_message_of_what_is_not_under_way_is_news() -> None:
    before = {"conditions": [{"type": "Ready", "status": "False", "reason": "PolicyMissing", "message": "a"}]}
    assert patience("Pipeline", before, changed(before, "conditions 0 message", "b")) == 0


def test_the_message_of_a_rollout_is_news_at_its_end() -> None:
    going = {"rollout": {"release": "r", "step": 1, "members": 1, "message": "1 of 3"}}
    assert patience("Pipeline", going, changed(going, "rollout message", "2 of 3")) == PROGRESS_SECONDS
    ended = {"rollout": {"verdict": "Promote", "message": "the change is in force"}}
    assert patience("Pipeline", going, ended) == 0
    assert patience("Pipeline", ended, changed(ended, "rollout message", "nothing is to be done")) == 0


def test_the_same_figure_of_another_kind_is_news() -> None:
    assert patience("TaskRun", pool(), changed(pool(), "members 0 sessions", 5)) == 0


@given(Statuses, Statuses, st.sampled_from(["JailPool", "AnalysisRun", "Policy"]))
def test_whatever_differs_is_written_in_the_end(before: dict[str, Any], after: dict[str, Any], kind: str) -> None:
    found = patience(kind, before, after)
    assert (found is None) == (before == after)
    assert found is None or 0 <= found <= COUNTER_SECONDS


@given(Statuses, Statuses)
def test_news_among_figures_is_news(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert patience("JailPool", {**before, "observedGeneration": 1}, {**after, "observedGeneration": 2}) == 0
