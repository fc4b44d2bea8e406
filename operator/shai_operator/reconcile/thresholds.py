# SPDX-License-Identifier: BSD-2-Clause
"""The thresholds of a benchmark: what the load generator has judged, as a part of its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import FALSE, MESSAGE_LIMIT, TRUE, UNKNOWN, Condition
from shai_operator.reconcile.objects import spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

WITHIN = "WithinThresholds"
_TEXT_LIMIT = 512


def rows(results: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the judgements in the form of a status."""
    return [
        {
            "threshold": judged["threshold"],
            "exceeded": TRUE if judged["exceeded"] else FALSE,
            "message": judged["message"][:_TEXT_LIMIT],
        }
        for judged in results.get("thresholds") or ()
    ]


def condition(benchmark: Object, succeeded: Condition, results: Mapping[str, Any] | None) -> Condition | None:
    """Return the condition WithinThresholds; None for a benchmark without thresholds.

    ``succeeded`` is the benchmark's other condition. A measurement without results is not within its thresholds.
    """
    if not spec(benchmark).get("thresholds"):
        return None
    if succeeded.status == UNKNOWN:
        return Condition(WITHIN, UNKNOWN, "Pending", "decided when the measurement is complete")
    if succeeded.status == FALSE:
        return Condition(WITHIN, UNKNOWN, "NotMeasured", f"there are no results ({succeeded.reason})")
    judged = (results or {}).get("thresholds") or ()
    exceeded = [one["message"] for one in judged if one["exceeded"]]
    if exceeded:
        return Condition(WITHIN, FALSE, "Exceeded", "; ".join(exceeded)[:MESSAGE_LIMIT])
    return Condition(WITHIN, TRUE, "Within", "; ".join(one["message"] for one in judged)[:MESSAGE_LIMIT])
