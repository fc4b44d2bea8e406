# SPDX-License-Identifier: BSD-2-Clause
"""Locust: more and more users.

.venv/bin/locust -f loadgen/scenarios/ramp.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["Ramp", "SearchUser"]


class Ramp(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["ramp"]
