# SPDX-License-Identifier: BSD-2-Clause
"""Pipeline: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import pipeline

BOARD = Board(
    "shai-pipeline",
    "Pipeline",
    "What flows where in a pipeline, and who allows it?",
    pipeline.PANELS,
    (
        Row(4, (("mode", 5), ("active", 4), ("native-share", 6), ("restarts", 4), ("discarded", 5))),
        Row(13, (("flow", 15), ("conduits", 9))),
        Row(8, (("opens", 8), ("interceptions", 8), ("sessions", 8)), "Accesses and sessions"),
        Row(8, (("decision-time", 8), ("cpu", 8), ("workers", 8)), "Cost"),
        Row(7, (("tasks", 24),), "Tasks"),
    ),
)
