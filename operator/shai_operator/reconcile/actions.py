# SPDX-License-Identifier: BSD-2-Clause
"""The actions of a reconciliation. `shai_operator.control` carries them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object, Reference

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True)
class Create:
    """Create an object. If it exists already, the action has succeeded, because the name follows from the content."""

    body: Mapping[str, Any]


@dataclass(frozen=True)
class Delete:
    """Delete an object, if it is still the one with this uid."""

    target: Reference
    uid: str


@dataclass(frozen=True)
class SetStatus:
    """Apply a part of an object's status: all fields that ``writer`` owns.

    Fields that an earlier status of the same writer had, and that this status lacks, are removed. If the object as last
    seen already has these values, nothing is sent.
    """

    obj: Object
    writer: str
    status: Mapping[str, Any]


@dataclass(frozen=True)
class SetFinalizer:
    """Add the operator's finalizer to an object, or remove it."""

    obj: Object
    present: bool


@dataclass(frozen=True)
class SetAnnotation:
    """Change an annotation of an object, or remove it (empty value); nothing when the object has changed since."""

    obj: Object
    name: str
    value: str


@dataclass(frozen=True)
class Emit:
    """Record a Kubernetes event about an object. The same text again is counted, not repeated."""

    obj: Object
    type: str
    reason: str
    message: str


@dataclass(frozen=True)
class Requeue:
    """Reconcile the same object again after this time, whatever happens."""

    seconds: float


Action = Create | Delete | SetStatus | SetFinalizer | SetAnnotation | Emit | Requeue


@dataclass
class Plan:
    """Actions in the order in which they have to be carried out."""

    actions: list[Action] = field(default_factory=list)

    def add(self, *actions: Action) -> None:
        """Append actions."""
        self.actions.extend(actions)
