# SPDX-License-Identifier: BSD-2-Clause
"""Overhead: the landing page."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import overhead

BOARD = Board(
    "shai-overhead",
    "Overhead",
    "What does enforcement cost now, and what does it stop?",
    overhead.PANELS,
    (
        Row(
            4,
            (
                ("added-session", 5),
                ("added-query", 5),
                ("share", 4),
                ("active", 3),
                ("refused", 3),
                ("would-refuse", 4),
            ),
        ),
        Row(9, (("overhead", 12), ("added", 12))),
        Row(8, (("throughput", 12), ("latency", 12)), "Beside baseline"),
        Row(9, (("measured", 24),)),
        Row(8, (("cpu-session", 12), ("opens", 12)), "Now"),
        Row(8, (("sessions", 8), ("stopped", 8), ("policies", 8)), "What was stopped"),
    ),
)
