# SPDX-License-Identifier: BSD-2-Clause
"""Locust: sessions of 32 queries.

.venv/bin/locust -f loadgen/scenarios/sessions_32.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "SessionsOfThirtyTwo"]


class SessionsOfThirtyTwo(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["sessions_32"]
