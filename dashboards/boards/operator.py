# SPDX-License-Identifier: BSD-2-Clause
"""Operator: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import operator

BOARD = Board(
    "shai-operator",
    "Operator",
    "Does the operator keep up, and what does it wait for?",
    operator.PANELS,
    (
        Row(4, (("version", 6), ("queue", 6), ("errors", 6), ("lag", 6))),
        Row(8, (("not-ready", 24),)),
        Row(8, (("reconciliations", 8), ("duration", 8), ("failures", 8)), "Work"),
        Row(8, (("requests", 8), ("waiting", 8), ("resources", 8))),
        Row(7, (("memory", 12), ("left-out", 12))),
    ),
)
