# SPDX-License-Identifier: BSD-2-Clause
"""Situations of a rollout of three members, for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shai_operator.reconcile import rollout
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.judging import Usage
from shai_operator.reconcile.members import Sample
from shai_operator.reconcile.rollout_state import Decision, Member, Settings, Situation, State, Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = (Step(1, 60), Step("100%", 60))
HARMLESS = Effect("old", "new", {"flowsBefore": 100, "closedTotal": 10, "openedTotal": 2})
BEFORE = Usage(sessions=100, decisions=1000, refusals=10, microseconds=100_000)


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def samples(release: str, sessions: int = 30, denials: int = 0, microseconds: int = 1000) -> tuple[Sample, ...]:
    """Two samples, from the beginning and the end of the first minute."""
    return (
        Sample(NOW, "1", release, 0, 0, 0, 0),
        Sample(seconds(60), "1", release, sessions, sessions * 10, denials, sessions * microseconds),
    )


def member(ordinal: int, release: str = "old", **more: Any) -> Member:
    more.setdefault("ready", True)
    more.setdefault("answers", True)
    more.setdefault("comparable", release == "old")
    return Member(f"m{ordinal}", ordinal, release, **more)


def situation(*members: Member, **more: Any) -> Situation:
    known: dict[str, Any] = {
        "stable": "old",
        "desired": "new",
        "rejected": "",
        "state": State(),
        "settings": Settings(STEPS),
        "now": NOW,
        "effect": HARMLESS,
    }
    return Situation(members=members or (member(0), member(1), member(2)), **{**known, **more})


def first_step(**more: Any) -> State:
    return replace(State(candidate="new", step=1, canaries=("m0",), since=NOW, before=BEFORE), **more)


def watched(**more: Any) -> State:
    return first_step(watched_since=NOW, **more)


def judged(canary: Member, *others: Member, **more: Any) -> Decision:
    return rollout.decide(situation(canary, *others, **{"state": watched(), "now": seconds(60), **more}))


def outcome(decision: Decision) -> tuple[str, str]:
    return decision.verdict, decision.condition.reason
