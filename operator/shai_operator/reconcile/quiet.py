# SPDX-License-Identifier: BSD-2-Clause
"""Which changes of a status are news, and which are only figures that move.

Each write of a status is an event for everybody who watches the object. What somebody waits for or has to act on is
written at once. Progress, counters and messages with figures are written together with news, or after some seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRESS_SECONDS, COUNTER_SECONDS = 10.0, 60.0
"""How old progress and counters in a status may be."""
_UNDER_WAY = "Progressing", "Inconclusive", "Running"
"""Reasons of conditions whose message says how far something is."""
_MESSAGE = "message of what is under way"
_FIGURES: Mapping[str, float] = {
    _MESSAGE: PROGRESS_SECONDS,
    "JailPool members[] sessions": COUNTER_SECONDS,
    "JailPool hosts[] freeMemoryMebibytes": COUNTER_SECONDS,
    "JailPool members[] progress task": PROGRESS_SECONDS,
    "JailPool members[] progress done": PROGRESS_SECONDS,
    "JailPool members[] progress total": PROGRESS_SECONDS,
    "Pipeline rollout members": PROGRESS_SECONDS,
    "JailPool namespaces[] rollout members": PROGRESS_SECONDS,
    "AnalysisRun progress done": PROGRESS_SECONDS,
    "AnalysisRun progress total": PROGRESS_SECONDS,
    "AnalysisRun members[] done": PROGRESS_SECONDS,
    "AnalysisRun members[] total": PROGRESS_SECONDS,
    "Benchmark progress done": PROGRESS_SECONDS,
    "Benchmark progress message": PROGRESS_SECONDS,
}
"""By kind and place in the status: after how many seconds a change is written. All other changes are news."""


def patience(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """Return how old ``before`` may get until ``after`` has to be written, in seconds; None: they are the same."""
    return min((_FIGURES.get(place, 0.0) for place in _changes(kind, before, after)), default=None)


def _changes(place: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the places where two values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        under_way = _under_way(before, after)
        for key in {**before, **after}:
            inner = _MESSAGE if key == "message" and under_way else f"{place} {key}"
            if key in before and key in after:
                yield from _changes(inner, before[key], after[key])
            else:
                yield place
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for first, last in zip(before, after, strict=True):
            yield from _changes(f"{place}[]", first, last)
    elif before != after:
        yield place


def _under_way(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two conditions, or rollouts, say of the same that it goes on."""
    if "step" in before and "step" in after:  # a rollout, as a Pipeline has it
        return bool(before.get("release") == after.get("release") != "")
    return before.get("reason") == after.get("reason") in _UNDER_WAY
