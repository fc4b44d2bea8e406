# SPDX-License-Identifier: BSD-2-Clause
"""Rollout: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import rollout

BOARD = Board(
    "shai-rollout",
    "Rollout",
    "Is a new release worse than the old one, and how far is it?",
    rollout.PANELS,
    (
        Row(6, (("step", 3), ("steps", 3), ("completed", 3), ("rolled-back", 3), ("state", 12))),
        Row(8, (("denials", 8), ("decision-time", 8), ("sessions", 8)), "Canary beside stable"),
        Row(8, (("members", 8), ("progress", 8), ("refused", 8)), "Members"),
        Row(8, (("bundles", 24),)),
    ),
    events=rollout.EVENTS,
)
