# SPDX-License-Identifier: BSD-2-Clause
"""From the samples of `loadgen.measuring.sessions` to session.json.

All times are CPU times in microseconds: medians over the rounds, each compared within its round, with the ends of their
95 % intervals (null after one round).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadgen.datasets.crowd import FAR, NEAR, USERS
from loadgen.errors import LoadgenError
from loadgen.plan import BARE, BASELINE, CONTROL, UNLIMITED
from loadgen.results import estimates, samples
from loadgen.results.summary import PER_SESSION, machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.results.estimates import Estimate
    from loadgen.results.samples import Sample

FORKED = "forked"
"""Mode baseline with a process for each session, which nothing confines."""

PROCESS = "process"
"""Mode shai with a process for each session. In the other enforcing series workers are rolled back."""

SHAI, DYNAMIC, LAZY = "shai", "dynamic", "dynamic-lazy"
BARE_SERIES = (BASELINE, CONTROL, FORKED, SHAI, PROCESS, DYNAMIC, LAZY)
QUERY_SERIES = (BASELINE, CONTROL, SHAI, DYNAMIC, LAZY)
COUNTED = (BASELINE, FORKED, SHAI, PROCESS)
"""Whose page faults, context switches and system calls are counted."""

BESIDE = "beside"
"""Mode shai of another checkout."""

FORMAT = 1
_DIGITS = 3

Figure = dict[str, float | None]


class UncountedError(LoadgenError):
    """The counts do not show what was to be measured; the text says what is missing."""


@dataclass(frozen=True)
class Counts:
    """What was counted in one slice, by kind and process."""

    sessions: int
    queries: int
    numbers: Mapping[str, Mapping[str, int]]

    def per_session(self, kind: str) -> float:
        """Return the number of one kind for each session, of all processes."""
        return round(sum(self.numbers[kind].values()) / self.sessions, 2)

    def supervisor_calls(self, bare: Counts) -> float:
        """Return the supervisor's system calls for each query, without those for sessions that only log in.

        The monitor's are not among them: it has some when nobody asks for anything, many for each of few queries.
        """
        own, begun = (count.numbers["syscalls"].get("supervisor", 0) for count in (self, bare))
        return (own - begun / bare.sessions * self.sessions) / self.queries


class Samples:
    """What was measured, by what it says about a session, a query, an interception."""

    def __init__(self, measured: Sequence[Sample], seed: int) -> None:
        self._measured = measured
        self._seed = seed

    def bare(self, series: str) -> list[Sample]:
        """Return the slices of sessions that only log in."""
        return samples.of(self._measured, series, BARE, USERS)

    def series(self) -> list[str]:
        """Return whose sessions that only log in were measured."""
        measured = {sample.mode for sample in self._measured}
        return [series for series in (*BARE_SERIES, BESIDE) if series in measured]

    def rate(self, series: str) -> list[float]:
        """Return the sessions that only log in per second in each round."""
        return [sample.sessions / sample.seconds for sample in self.bare(series)]

    def session(self, series: str) -> list[float]:
        """Return a session's CPU time in each round."""
        return [sample.cpu_micros_per_session for sample in self.bare(series)]

    def query(self, series: str) -> list[float]:
        """Return a query's CPU time in each round, without what the sessions themselves took."""
        pairs = zip(samples.of(self._measured, series, UNLIMITED, USERS), self.session(series), strict=True)
        return [(one.cpu_seconds * 1e6 - one.sessions * bare) / one.queries for one, bare in pairs]

    def asking(self) -> tuple[list[float], list[float]]:
        """Return the CPU time of queries whose documents have to be asked for, and of those that open natively."""
        far, near = (samples.of(self._measured, SHAI, UNLIMITED, people) for people in (FAR, NEAR))
        return [one.cpu_micros_per_query for one in far], [one.cpu_micros_per_query for one in near]

    def asked(self, series: str) -> float:
        """Return the monitor's interceptions per query, in all rounds together."""
        own = samples.of(self._measured, series, UNLIMITED, USERS)
        kinds = (count for one in own for kind, count in one.interceptions.items() if kind not in PER_SESSION)
        return sum(kinds) / sum(one.queries for one in own)

    def median(self, values: Sequence[float]) -> Estimate:
        """Return the median of one value per round."""
        return estimates.median(values, self._seed)

    def difference(self, own: Sequence[float], base: Sequence[float]) -> Estimate:
        """Return the median of the differences within rounds."""
        return estimates.difference(own, base, self._seed)


def summarise(
    measured: Sequence[Sample],
    *,
    ed25519: Estimate,
    counts: Mapping[str, Counts],
    near: Counts,
    far: Counts,
    size: Mapping[str, Any],
    seed: int,
    unsealed: str | None = None,
    beside: str | None = None,
) -> dict[str, Any]:
    """Return what session.json contains, as plain JSON values.

    ``ed25519`` is the CPU time of verifying a login. ``counts`` of bare sessions are by what was measured, ``near`` and
    ``far`` are of queries. ``size`` describes the measurement. ``unsealed`` is why the workers of series shai were not
    rolled back, if they were not. ``beside`` is the commit of another checkout, if one was
    measured beside. What `loadgen.measuring.live` finds is added later, as "live" and "live_process".
    """
    found = Samples(measured, seed)
    return {
        "format": FORMAT,
        "size": dict(size),
        "machine": machine(),
        **_added(found, ed25519),
        "cpu_us_per_interception": figure(_prepared(found, counts[SHAI], near, far)),
        "cpu_us_per_interception_dynamic": figure(_evaluated(found, DYNAMIC)),
        "cpu_us_per_interception_dynamic_lazy": figure(_evaluated(found, LAZY)),
        "interceptions_per_query": {series: round(found.asked(series), 4) for series in (DYNAMIC, LAZY, SHAI)},
        **{
            kind: {series: count.per_session(kind) for series, count in counts.items()}
            for kind in ("faults", "switches", "syscalls")
        },
        **_by_series(found, counts),
        "unsealed": unsealed,
        "beside": None if beside is None else {"commit": beside, **_beside(found)},
        "live": None,
        "live_process": None,
    }


def _added(found: Samples, ed25519: Estimate) -> dict[str, Figure]:
    """Return what mode shai adds to a session and to a query, its parts, and what the control differs by.

    Deciding is measured with a process for each session, confined and not; it is the same with workers that are rolled
    back.
    """

    def compared(own: str, base: str) -> Estimate:
        return found.difference(found.session(own), found.session(base))

    deciding = [own - base for own, base in zip(found.session(PROCESS), found.session(FORKED), strict=True)]
    undecided = [base + more for base, more in zip(found.session(BASELINE), deciding, strict=True)]
    # The baseline verifies logins itself: a confined session is to be charged for its own.
    login = ed25519.value
    return {
        "added_cpu_us_per_session": figure(shifted(compared(SHAI, BASELINE), login)),
        "added_cpu_us_per_session_process": figure(shifted(compared(PROCESS, BASELINE), login)),
        "ed25519_cpu_us_per_session": figure(ed25519),
        "isolating_cpu_us_per_session": figure(compared(FORKED, BASELINE)),
        "isolating_cpu_us_per_session_rolled_back": figure(found.difference(found.session(SHAI), undecided)),
        "deciding_cpu_us_per_session": figure(shifted(found.median(deciding), login)),
        "control_us_per_session": figure(compared(CONTROL, BASELINE)),
        "added_cpu_us_per_query": figure(found.difference(found.query(SHAI), found.query(BASELINE))),
        "control_us_per_query": figure(found.difference(found.query(CONTROL), found.query(BASELINE))),
    }


def _by_series(found: Samples, counts: Mapping[str, Counts]) -> dict[str, dict[str, Any]]:
    """Return what is known of the sessions of each series that only log in."""
    series = found.series()
    busiest = {name: max(one.driver_cpu_seconds / one.seconds for one in found.bare(name)) for name in series}
    return {
        "by_process": {
            name: {
                "cpu_us_per_session": _by_process(found.bare(name)),
                **(_counted_by_process(counts[name]) if name in counts else {}),
            }
            for name in series
        },
        "sessions_per_second": {name: figure(found.median(found.rate(name))) for name in series},
        "driver_share": {name: round(share, 3) for name, share in busiest.items()},
    }


def shifted(estimate: Estimate, by: float) -> Estimate:
    """Return an estimate and its interval, moved."""
    return replace(estimate, value=estimate.value + by, low=estimate.low + by, high=estimate.high + by)


def figure(estimate: Estimate) -> Figure:
    """Convert an estimate to JSON."""
    return estimate.plain(_DIGITS)


def _prepared(found: Samples, bare: Counts, near: Counts, far: Counts) -> Estimate:
    """Return the CPU time that an interception adds to an open, when the answer is prepared.

    A query has one document, and so one interception if the document has to be asked for: the supervisor is asked.
    """
    more = far.supervisor_calls(bare) - near.supervisor_calls(bare)
    if more < 1:
        raise UncountedError(
            f"a supervisor makes {more:.2f} system calls more for a document that has to be asked for; with "
            "sessions that open documents natively (`shai doctor`: detached mounts) it is at least one"
        )
    return found.difference(*found.asking())


def _evaluated(found: Samples, mode: str) -> Estimate:
    """Return the CPU time of an interception in a mode that tracks the taint at run time."""
    interceptions = found.asked(mode)
    if interceptions == 0:
        raise UncountedError(f"the monitor counted no interception of a query in mode {mode}")
    estimate = found.difference(found.query(mode), found.query(BASELINE))
    value, low, high = (end / interceptions for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def _beside(found: Samples) -> dict[str, Any]:
    """Return how mode shai compares with that of another checkout."""
    rates = zip(found.rate(SHAI), found.rate(BESIDE), strict=True)
    return {
        "sessions_per_second_ratio": figure(found.median([own / other for own, other in rates])),
        "saved_cpu_us_per_session": figure(found.difference(found.session(BESIDE), found.session(SHAI))),
    }


def _by_process(own: Sequence[Sample]) -> dict[str, float]:
    names = own[0].process_cpu_seconds
    sessions = sum(one.sessions for one in own)
    return {name: round(sum(one.process_cpu_seconds[name] for one in own) * 1e6 / sessions, 1) for name in names}


def _counted_by_process(count: Counts) -> dict[str, dict[str, float]]:
    return {
        kind: {name: round(number / count.sessions, 2) for name, number in by_process.items()}
        for kind, by_process in count.numbers.items()
    }
