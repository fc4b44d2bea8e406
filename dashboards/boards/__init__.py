# SPDX-License-Identifier: BSD-2-Clause
"""The boards: which panels stand where. ALL lists them, the landing page first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboards.boards import analysis, benchmark, operator, overhead, pipeline, policies, pool, rollout

if TYPE_CHECKING:
    from dashboards.model import Board

ALL: tuple[Board, ...] = (
    overhead.BOARD,
    pipeline.BOARD,
    policies.BOARD,
    analysis.BOARD,
    rollout.BOARD,
    pool.BOARD,
    benchmark.BOARD,
    operator.BOARD,
)
