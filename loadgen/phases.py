# SPDX-License-Identifier: BSD-2-Clause
"""How many users there are at each moment of a run: phases with a share of its time and of its users."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Phase:
    """A part of a run. The number of users changes evenly from its beginning to its end."""

    name: str
    share: float
    """Of the run's time; the shares of all phases add up to 1."""
    begin: float
    end: float
    """Shares of the run's greatest number of users, 0 … 1."""


@dataclass(frozen=True)
class Moment:
    """What a moment of a run asks for."""

    phase: str
    users: int


def level(name: str, share: float, of_users: float) -> Phase:
    """Return a phase with an equal number of users all the time."""
    return Phase(name, share, of_users, of_users)


def moment(phases: Sequence[Phase], elapsed: float, seconds: float, users: int) -> Moment | None:
    """Return what ``elapsed`` seconds after the start of a run of ``seconds`` asks for; None after its end.

    ``users`` is the greatest number. There is always at least one user.
    """
    begins = 0.0
    for phase in phases:
        lasts = phase.share * seconds
        if elapsed < begins + lasts or (phase is phases[-1] and elapsed < seconds):
            part = min(1.0, max(0.0, (elapsed - begins) / lasts)) if lasts else 1.0
            wanted = users * (phase.begin + (phase.end - phase.begin) * part)
            # Half a user more or less is no change of the load: round half up, so that a ramp is even.
            return Moment(phase.name, max(1, math.floor(wanted + 0.5)))
        begins += lasts
    return None
