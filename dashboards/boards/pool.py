# SPDX-License-Identifier: BSD-2-Clause
"""Pool: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import pool

BOARD = Board(
    "shai-pool",
    "Pool",
    "Which members are there, where do they run, and are they well?",
    pool.PANELS,
    (
        Row(4, (("ready", 5), ("deciding", 5), ("unrecorded", 5), ("verified", 5), ("rejected", 4))),
        Row(8, (("members", 24),)),
        Row(8, (("counts", 8), ("readiness", 8), ("sessions", 8)), "State"),
        Row(8, (("hosts", 12), ("machines", 12)), "Hosts of virtual machines"),
        Row(8, (("free", 12), ("jails", 12))),
        Row(8, (("cpu", 8), ("memory", 8), ("facts", 8)), "Resources"),
        Row(8, (("audit", 8), ("backlog", 8), ("audit-size", 8)), "Audit log"),
        Row(8, (("sources", 7), ("source-age", 7), ("versions", 10))),
    ),
)
