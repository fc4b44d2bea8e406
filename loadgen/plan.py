# SPDX-License-Identifier: BSD-2-Clause
"""The plan of a measurement: one for each size, or from a Benchmark's spec."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.errors import PublicError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.phases import Phase

UNLIMITED = 0
"""The session length for one session during the whole slice."""

BARE = -1
"""The session length for sessions that only log in and end, to measure what a session itself costs."""

BASELINE = "baseline"
"""The mode without enforcement, with which the others are compared."""

CONTROL = "control"
"""A second stack in mode baseline, equal to the first: what the two differ by is the resolution of a measurement."""

SEARCH = "search"
"""The scenario of plans that have none of `loadgen.scenarios`: all users all the time, in sessions of each length."""

MODES = (BASELINE, "dynamic", "dynamic-lazy", "shai")
KNOWN_MODES = (*MODES, "audit")

_SLICE_OVERHEAD_SECONDS = 1.1
"""Time of a slice in addition to its load: switching, counting, settling."""


def sessions(length: int) -> str:
    """Describe sessions of this length."""
    special = {BARE: "bare sessions", UNLIMITED: "unlimited sessions", 1: "sessions of 1 query"}
    return special.get(length, f"sessions of {length} queries")


class PlanError(PublicError):
    """A plan that cannot be carried out; the text names the field and its valid values."""


@dataclass(frozen=True)
class Plan:
    """One measurement. A round runs every mode and the control once at every session length, ``slice_seconds`` each."""

    name: str
    rounds: int
    slice_seconds: float
    session_lengths: tuple[int, ...]
    warm_up_seconds: float
    """Time of load on every stack before the first slice, for the search engine's compiler."""
    concurrent_users: int = 24
    modes: tuple[str, ...] = MODES
    seed: int = 1
    """The seed for the order of slices, the users and the queries."""
    scenario: str = SEARCH
    phases: tuple[Phase, ...] = ()
    """How many of the users there are at each moment of a slice; empty: all of them all the time."""
    mispredicted: float = 0.0
    """The share of sessions that connect from another region than their user's home."""
    workers: int = 1
    """The processes that generate the load."""
    jobs: bool = False
    """Whether they are started elsewhere and connect, and are not this machine's."""
    thresholds: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """What is measured in each round: the modes, and the control."""
        return (*self.modes, CONTROL)

    @property
    def slices(self) -> int:
        """The number of slices of the whole measurement."""
        return self.rounds * len(self.session_lengths) * len(self.series)

    @property
    def seconds(self) -> float:
        """The expected time of the measurement."""
        return 3 * self.warm_up_seconds + self.slices * (self.slice_seconds + _SLICE_OVERHEAD_SECONDS)

    @property
    def enforcing(self) -> tuple[str, ...]:
        """The modes that are compared with mode baseline."""
        return tuple(mode for mode in self.modes if mode != BASELINE)


def read(wanted: Mapping[str, Any]) -> Plan:
    """Read a plan from the fields of a Benchmark's spec; PlanError when it cannot be carried out."""
    plan = Plan(
        name=str(wanted.get("name", "benchmark")),
        rounds=_whole(wanted, "rounds", 7, 1),
        slice_seconds=float(_whole(wanted, "sliceSeconds", 3, 1)),
        session_lengths=tuple(
            sorted(_list(wanted, "sessionLengths", _LENGTHS, int), key=lambda length: length or math.inf)
        ),
        warm_up_seconds=float(_whole(wanted, "warmUpSeconds", 25, 1)),
        concurrent_users=_whole(wanted, "concurrentUsers", 24, 1),
        modes=tuple(_list(wanted, "modes", MODES, str)),
        scenario=str(wanted.get("scenario", SEARCH)),
        workers=_whole(wanted.get("workers") or {}, "count", 1, 1),
        jobs=(wanted.get("workers") or {}).get("as", "Process") == "Job",
        thresholds=tuple(_list(wanted, "thresholds", (), str)) if wanted.get("thresholds") else (),
        seed=_whole(wanted, "seed", 1, 0),
    )
    if plan.workers > plan.concurrent_users:
        raise PlanError(f"workers: {plan.workers} are more than concurrentUsers, {plan.concurrent_users}")
    unknown = [mode for mode in plan.modes if mode not in KNOWN_MODES]
    if unknown:
        raise PlanError(f"modes: {unknown[0]!r} is not a mode; expected some of {', '.join(KNOWN_MODES)}")
    if BASELINE not in plan.modes or not plan.enforcing:
        raise PlanError(f"modes: {BASELINE} and another are needed, to compare; got {', '.join(plan.modes) or 'none'}")
    if min(plan.session_lengths) < 0:
        raise PlanError("sessionLengths: expected numbers of queries, 0 for one session for the whole run")
    return plan


def _whole(wanted: Mapping[str, Any], field: str, usual: int, least: int) -> int:
    value = wanted.get(field, usual)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PlanError(f"{field}: expected a whole number from {least}, got {value!r}")
    return value


def _list(wanted: Mapping[str, Any], field: str, usual: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
    values = wanted.get(field, usual)
    if not isinstance(values, list | tuple) or not values or any(type(value) is not kind for value in values):
        raise PlanError(f"{field}: expected a list, got {values!r}")
    if len(set(values)) < len(values):
        raise PlanError(f"{field}: each one once, got {values!r}")
    return tuple(values)


_LENGTHS = (1, 8, 32, UNLIMITED)
_PAPER_LENGTHS = (1, 2, 4, 8, 16, 32, UNLIMITED)

PLANS = {
    plan.name: plan
    for plan in (
        Plan("smoke", rounds=1, slice_seconds=2.0, warm_up_seconds=4.0, session_lengths=_LENGTHS),
        Plan("quick", rounds=7, slice_seconds=2.5, warm_up_seconds=25.0, session_lengths=_LENGTHS),
        Plan("standard", rounds=12, slice_seconds=5.0, warm_up_seconds=60.0, session_lengths=_PAPER_LENGTHS),
        Plan("paper", rounds=40, slice_seconds=20.0, warm_up_seconds=120.0, session_lengths=_PAPER_LENGTHS),
    )
}
