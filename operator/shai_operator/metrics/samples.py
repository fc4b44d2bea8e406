# SPDX-License-Identifier: BSD-2-Clause
"""Samples of metrics that are read from objects, and what they are read from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from shai_operator.reconcile.objects import PLURALS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.judging import Usage
    from shai_operator.reconcile.objects import Inventory, Object

STABLE, CANARY = "stable", "canary"
COMPLETED, ROLLED_BACK = "completed", "rolled_back"


class Sample(NamedTuple):
    """One value of a metric. ``labels`` are in the order of the table."""

    name: str
    labels: tuple[str, ...]
    value: float


class Sharing(NamedTuple):
    """A pool, and a namespace that it serves."""

    pool: str
    namespace: str


@dataclass(frozen=True)
class Snapshot:
    """What is known at one moment. Nothing alters it, so that other threads may read it."""

    objects: Mapping[str, Sequence[Object]]
    """The objects of each kind, by name."""
    tracks: Mapping[Sharing, Mapping[str, Usage]] = field(default_factory=dict)
    """The usage on each side of the step that is watched."""
    rollouts: Mapping[Sharing, Mapping[str, int]] = field(default_factory=dict)
    """How many rollouts ended with each result."""
    version: str = ""
    """Version of the operator."""
    certificate_ends: float = math.nan
    """When the certificate for scraping expires, in seconds since 1970; NaN: there is none."""


def objects(inventory: Inventory) -> dict[str, Sequence[Object]]:
    """Return the objects for a snapshot; they are shared, since nobody alters them."""
    return {kind: inventory.all(kind) for kind in PLURALS}
