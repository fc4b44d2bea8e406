# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the API server serves all kinds.

When a CustomResourceDefinition is deleted, its objects are deleted with it. To the operator this looks as if somebody
had deleted every Policy, which nobody intended. The operator therefore changes and removes nothing while a kind is
missing.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from shai_operator.reconcile.objects import GROUP, PLURALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from shai_operator.cluster.client import Cluster

_TRUST_SECONDS = 2.0


class KindsMissingError(Exception):
    """A kind is not served, or its definition is being deleted."""

    again_seconds = 15.0
    """Seconds until the next check."""


class Kinds:
    """Reads the definitions of the group's kinds."""

    def __init__(self, cluster: Cluster, seen: Callable[[], float]) -> None:
        """``seen`` returns when the last event of an object arrived, by the monotonic clock."""
        self._cluster = cluster
        self._seen = seen
        self._checked = 0.0
        self._last = math.nan

    async def check(self, *, changing: bool) -> None:
        """Raise KindsMissingError when a kind is missing; without ``changing``, do nothing.

        While no object changes, the last answer holds: what is decided was known when it came.
        """
        seen = self._seen()
        if not changing or time.monotonic() - self._checked < _TRUST_SECONDS or seen == self._last:
            return
        served = {
            found["metadata"]["name"]
            for found in await self._cluster.list("CustomResourceDefinition")
            if not found["metadata"].get("deletionTimestamp")
        }
        missing = sorted(kind for kind, plural in PLURALS.items() if f"{plural}.{GROUP}" not in served)
        if missing:
            raise KindsMissingError(
                f"the CustomResourceDefinition of {', '.join(missing)} is missing or being deleted. What runs goes on "
                "unchanged; apply the definitions again (kubectl apply -k crds), then the objects"
            )
        self._checked, self._last = time.monotonic(), seen
