# SPDX-License-Identifier: BSD-2-Clause
"""The controller of OfflineAnalysis: it creates AnalysisRuns on schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.reconcile import analyses

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor
    from shai_operator.control.loop import Loop
    from shai_operator.reconcile.objects import Reference


class AnalysisController:
    """The controller of OfflineAnalysis."""

    def __init__(self, loop: Loop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one object; do nothing when it does not exist any more."""
        oa = self._loop.inventory.get(ref)
        if oa is None:
            return None
        return await self._executor.execute(analyses.reconcile(oa, self._loop.inventory, datetime.now(UTC)))
