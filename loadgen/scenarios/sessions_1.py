# SPDX-License-Identifier: BSD-2-Clause
"""Locust: a new session for each query.

.venv/bin/locust -f loadgen/scenarios/sessions_1.py
"""

from __future__ import annotations

from loadgen.driving.users import SearchUser
from loadgen.scenarios.by_hand import Shape
from loadgen.scenarios.definitions import SCENARIOS

__all__ = ["SearchUser", "SessionsOfOne"]


class SessionsOfOne(Shape):
    """The number of users at each moment."""

    scenario = SCENARIOS["sessions_1"]
