# SPDX-License-Identifier: BSD-2-Clause
"""Analysis: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import analysis

BOARD = Board(
    "shai-analysis",
    "Analysis",
    "How much is decided ahead of time, and how fresh is it?",
    analysis.PANELS,
    (
        Row(4, (("coverage", 4), ("age", 4), ("duration", 4), ("stale", 4), ("stale-time", 4), ("mispredicted", 4))),
        Row(8, (("accesses", 12), ("size", 12))),
        Row(8, (("sets", 8), ("durations", 8), ("learned", 8)), "Capability sets"),
        Row(8, (("facts", 6), ("revocation", 6), ("documents", 6), ("ingest", 6)), "When facts and documents change"),
        Row(8, (("blocked", 10), ("runs", 14)), "Runs"),
    ),
)
