# SPDX-License-Identifier: BSD-2-Clause
"""Locust: half of the users for a long time.

.venv/bin/locust -f loadgen/scenarios/soak.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "Soak"]


class Soak(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["soak"]
