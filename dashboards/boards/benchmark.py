# SPDX-License-Identifier: BSD-2-Clause
"""Benchmark: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import benchmark

BOARD = Board(
    "shai-benchmark",
    "Benchmark",
    "What did each measurement find, and how does the present one go?",
    benchmark.PANELS,
    (
        Row(6, (("done", 3), ("exceeded", 3), ("users", 3), ("failed", 3), ("violations", 4), ("completed", 8))),
        Row(9, (("added-session", 8), ("overhead-session-1", 8), ("interceptions", 8)), "Runs compared"),
        Row(10, (("overheads", 24),)),
        Row(10, (("figures", 24),)),
        Row(8, (("throughput", 8), ("latency", 8), ("shown", 8)), "Load now"),
        Row(5, (("accesses", 12), ("advertisements", 12)), "Beside searches"),
    ),
    range="now-6h",
)
