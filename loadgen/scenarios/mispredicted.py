# SPDX-License-Identifier: BSD-2-Clause
"""Locust: every second session from a region that the analysis did not expect.

.venv/bin/locust -f loadgen/scenarios/mispredicted.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["Mispredicted", "SearchUser"]


class Mispredicted(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["mispredicted"]
