# SPDX-License-Identifier: BSD-2-Clause
"""Conditions, by the Kubernetes API conventions.

The type is a noun or adjective, the status True, False or Unknown, the reason a word for programs, the message a
sentence for people.

``lastTransitionTime`` changes only when the status changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import generation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.reconcile.objects import Object

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MESSAGE_LIMIT = 4096
"""Characters of a message that the schemas allow."""
UNSAID_SECONDS = 30.0
"""How long a new object may have no status because it has not been checked yet."""


@dataclass(frozen=True)
class Condition:
    """One condition of an object, without its transition time."""

    type: str
    status: str
    reason: str
    message: str = ""


def find(obj: Object, kind: str) -> dict[str, Any] | None:
    """Return an object's condition of a type, or None."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return dict(condition)
    return None


def holds(obj: Object, kind: str) -> bool:
    """Whether a condition is True."""
    found = find(obj, kind)
    return found is not None and found["status"] == TRUE


def reason(obj: Object, kind: str) -> str:
    """Return a condition's reason; empty when there is no such condition."""
    found = find(obj, kind)
    return found["reason"] if found else ""


def current(obj: Object, kind: str) -> dict[str, Any] | None:
    """Return an object's condition of a type if it is about the object's present generation, or None.

    What is concluded from a condition of an earlier generation must not be said of the present one.
    """
    found = find(obj, kind)
    return found if found is not None and int(found.get("observedGeneration") or 0) >= generation(obj) else None


def render(
    obj: Object, wanted: Sequence[Condition], now: datetime, observed: int | None = None
) -> list[dict[str, Any]]:
    """Return conditions for an object's status. If a condition's status is unchanged, it keeps its transition time.

    Only the types in ``wanted`` are rendered: each writer of a status applies its own types. ``observed`` is the
    generation of the spec that they are about; None: the present one.
    """
    about = generation(obj) if observed is None else observed
    return [_render(find(obj, condition.type), condition, about, now) for condition in wanted]


def _render(before: dict[str, Any] | None, condition: Condition, observed: int, now: datetime) -> dict[str, Any]:
    stays = before is not None and before["status"] == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:MESSAGE_LIMIT],
        "observedGeneration": observed,
        "lastTransitionTime": before["lastTransitionTime"] if before and stays else timestamp(now),
    }


def unsaid(obj: Object, first: Condition, now: datetime) -> bool:
    """Whether there is nothing to say yet, because ``first``, of which the others follow, is not known.

    What was said of the same spec holds until it is checked again, by an operator that has just started. Most new
    objects are checked within a second: a status that only says so would be one more write for each of them.
    """
    if first.status != UNKNOWN:
        return False
    known = obj.get("status") or {}
    if known.get("observedGeneration") == int(obj["metadata"].get("generation", 1)):
        return True
    created = datetime.fromisoformat(str(obj["metadata"].get("creationTimestamp") or timestamp(now)))
    return not known and now - created < timedelta(seconds=UNSAID_SECONDS)


def timestamp(moment: datetime) -> str:
    """Write a moment as Kubernetes does: RFC 3339, UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
