# SPDX-License-Identifier: BSD-2-Clause
"""Policies and denials: where its panels stand."""

from __future__ import annotations

from dashboards.model import Board, Row
from dashboards.queries import policies

BOARD = Board(
    "shai-policies",
    "Policies and denials",
    "What was refused, to whom, by which policy, and why?",
    policies.PANELS,
    (
        Row(4, (("refused", 6), ("share", 6), ("would-refuse", 6), ("omitted", 6))),
        Row(9, (("who", 14), ("what", 10))),
        Row(8, (("by-reason", 8), ("by-policy", 8), ("by-operation", 8)), "Over time"),
        Row(8, (("would-by-policy", 12), ("revisions", 12)), "Before a policy is enforced"),
        Row(6, (("explain", 24),)),
    ),
)
