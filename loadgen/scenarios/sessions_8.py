# SPDX-License-Identifier: BSD-2-Clause
"""Locust: sessions of 8 queries.

.venv/bin/locust -f loadgen/scenarios/sessions_8.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "SessionsOfEight"]


class SessionsOfEight(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["sessions_8"]
