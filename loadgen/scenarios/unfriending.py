# SPDX-License-Identifier: BSD-2-Clause
"""Locust: friendships end and begin again while the former friends search.

.venv/bin/locust -f loadgen/scenarios/unfriending.py
"""

from __future__ import annotations

from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS
from loadgen.scenarios.friends import Friend

__all__ = ["Friend", "Unfriending"]


class Unfriending(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["unfriending"]
