# SPDX-License-Identifier: BSD-2-Clause
"""Locust: a quarter of the users, then all of them at once, then a quarter again.

.venv/bin/locust -f loadgen/scenarios/spike.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "Spike"]


class Spike(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["spike"]
