# SPDX-License-Identifier: BSD-2-Clause
"""The boards: which panels stand where. ALL lists them, the landing page first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboards.boards import overhead

if TYPE_CHECKING:
    from dashboards.model import Board

ALL: tuple[Board, ...] = (overhead.BOARD,)
