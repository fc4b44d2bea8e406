# SPDX-License-Identifier: BSD-2-Clause
"""Locust: the same number of users all the time, each in one session.

.venv/bin/locust -f loadgen/scenarios/steady.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "Steady"]


class Steady(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["steady"]
