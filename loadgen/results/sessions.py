# SPDX-License-Identifier: BSD-2-Clause
"""From the samples of `loadgen.measuring.sessions` to session.json and its table.

All times are CPU times in microseconds: medians over the rounds, each compared within its round, with the ends of their
95 % intervals (null after one round).
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from loadgen.datasets.crowd import FAR, NEAR, USERS
from loadgen.errors import LoadgenError
from loadgen.plan import BARE, BASELINE, CONTROL, UNLIMITED
from loadgen.results import estimates, samples
from loadgen.results.summary import PER_SESSION, machine
from loadgen.results.tables import SATURATED, WIDTH, three_digits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.results.estimates import Estimate
    from loadgen.results.samples import Sample

FORKED = "forked"
"""Mode baseline with a process for each session, which nothing confines."""

SHAI, DYNAMIC = "shai", "dynamic"
BARE_SERIES = (BASELINE, CONTROL, FORKED, SHAI, DYNAMIC)
QUERY_SERIES = (BASELINE, CONTROL, SHAI, DYNAMIC)

FORMAT = 1
_NOTHING = "-"

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
) -> dict[str, Any]:
    """Return what session.json contains, as plain JSON values.

    ``ed25519`` is the CPU time of verifying a login. ``counts`` of bare sessions are by what was measured, ``near`` and
    ``far`` are of queries. ``size`` describes the measurement. What `loadgen.measuring.live` finds is added later, as
    "live".
    """
    found = Samples(measured, seed)
    login = ed25519.value
    beyond = found.difference(found.session(SHAI), found.session(BASELINE))
    return {
        "format": FORMAT,
        "size": dict(size),
        "machine": machine(),
        # The baseline verifies logins itself: a confined session is to be charged for its own.
        "added_cpu_us_per_session": figure(shifted(beyond, login)),
        "ed25519_cpu_us_per_session": figure(ed25519),
        "isolating_cpu_us_per_session": figure(found.difference(found.session(FORKED), found.session(BASELINE))),
        "deciding_cpu_us_per_session": figure(
            shifted(found.difference(found.session(SHAI), found.session(FORKED)), login)
        ),
        "control_us_per_session": figure(found.difference(found.session(CONTROL), found.session(BASELINE))),
        "added_cpu_us_per_query": figure(found.difference(found.query(SHAI), found.query(BASELINE))),
        "control_us_per_query": figure(found.difference(found.query(CONTROL), found.query(BASELINE))),
        "cpu_us_per_interception": figure(_prepared(found, counts[SHAI], near, far)),
        "cpu_us_per_interception_dynamic": figure(_evaluated(found)),
        "interceptions_per_query": {
            "dynamic": round(found.asked(DYNAMIC), 4),
            "shai": round(found.asked(SHAI), 4),
        },
        **{
            kind: {series: count.per_session(kind) for series, count in counts.items()}
            for kind in ("faults", "switches", "syscalls")
        },
        "by_process": {
            series: {
                "cpu_us_per_session": _by_process(found.bare(series)),
                **(_counted_by_process(counts[series]) if series in counts else {}),
            }
            for series in BARE_SERIES
        },
        "sessions_per_second": {
            series: figure(found.median([one.sessions / one.seconds for one in found.bare(series)]))
            for series in BARE_SERIES
        },
        "driver_share": {
            series: round(max(one.driver_cpu_seconds / one.seconds for one in found.bare(series)), 3)
            for series in BARE_SERIES
        },
        "live": None,
    }


def shifted(estimate: Estimate, by: float) -> Estimate:
    """Return an estimate and its interval, moved."""
    return replace(estimate, value=estimate.value + by, low=estimate.low + by, high=estimate.high + by)


def figure(estimate: Estimate) -> Figure:
    """Convert an estimate to JSON."""
    ends = {"low": estimate.low, "high": estimate.high}
    return {
        "value": round(estimate.value, 3),
        **{name: round(value, 3) if math.isfinite(value) else None for name, value in ends.items()},
    }


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


def _evaluated(found: Samples) -> Estimate:
    """Return the CPU time of an interception in mode dynamic, which evaluates the policies for each."""
    interceptions = found.asked(DYNAMIC)
    if interceptions == 0:
        raise UncountedError("the monitor counted no interception of a query in mode dynamic")
    estimate = found.difference(found.query(DYNAMIC), found.query(BASELINE))
    value, low, high = (end / interceptions for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def _by_process(own: Sequence[Sample]) -> dict[str, float]:
    names = own[0].process_cpu_seconds
    sessions = sum(one.sessions for one in own)
    return {name: round(sum(one.process_cpu_seconds[name] for one in own) * 1e6 / sessions, 1) for name in names}


def _counted_by_process(count: Counts) -> dict[str, dict[str, float]]:
    return {
        kind: {name: round(number / count.sessions, 2) for name, number in by_process.items()}
        for kind, by_process in count.numbers.items()
    }


def plain(results: Mapping[str, Any]) -> str:
    """Return the tables for a file."""
    output = io.StringIO()
    show(results, Console(file=output, width=WIDTH))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def show(results: Mapping[str, Any], console: Console) -> None:
    """Print the tables and what has to be known to read them."""
    console.print(_headline(results), markup=False, highlight=False)
    for table in (_figures(results), _series(results), _processes(results)):
        console.print(table, "")
    for line in remarks(results):
        console.print(line, markup=False, highlight=False)


def _headline(results: Mapping[str, Any]) -> str:
    size, found = results["size"], results["machine"]
    rounds = "1 round" if size["rounds"] == 1 else f"{size['rounds']} rounds"
    return f"Sessions on {found['processor']}, {found['cores']} cores, {found['system']}; {rounds}, seed {size['seed']}"


_FIGURES = (
    ("added_cpu_us_per_session", "mode shai adds to a session, its login's verification included"),
    ("ed25519_cpu_us_per_session", "  of which the verification (Ed25519)"),
    ("isolating_cpu_us_per_session", "  of which isolating: a process for each session"),
    ("deciding_cpu_us_per_session", "  of which confining and deciding, the verification included"),
    ("control_us_per_session", "two equal baselines differ by, per session"),
    ("added_cpu_us_per_query", "mode shai adds to a query"),
    ("control_us_per_query", "two equal baselines differ by, per query"),
    ("cpu_us_per_interception", "an interception whose answer is prepared adds to an open"),
    ("cpu_us_per_interception_dynamic", "an interception in mode dynamic, evaluated each time"),
)


def _figures(results: Mapping[str, Any]) -> Table:
    table = _table("CPU time", "µs", "95 % interval")
    for name, about in _FIGURES:
        table.add_row(about, three_digits(results[name]["value"]), _interval(results[name]))
    return table


def _series(results: Mapping[str, Any]) -> Table:
    table = _table("a session that only logs in", *BARE_SERIES)
    kinds = (("faults", "minor page faults"), ("switches", "context switches"), ("syscalls", "system calls"))
    for kind, about in kinds:
        own = results[kind]
        table.add_row(about, *(three_digits(own[name]) if name in own else _NOTHING for name in BARE_SERIES))
    rates = results["sessions_per_second"]
    table.add_row("sessions per second", *(f"{rates[name]['value']:.0f}" for name in BARE_SERIES))
    return table


def _processes(results: Mapping[str, Any]) -> Table:
    table = _table("CPU µs of such a session, by process", *BARE_SERIES)
    own = {series: results["by_process"][series]["cpu_us_per_session"] for series in BARE_SERIES}
    for name in own[SHAI]:
        table.add_row(name, *(three_digits(own[series].get(name, 0.0)) for series in BARE_SERIES))
    return table


def remarks(results: Mapping[str, Any]) -> list[str]:
    """Return what has to be known to read the tables."""
    lines = [
        "baseline: the front end verifies logins itself, and serves everybody from the same processes.",
        "control: a second baseline, equal to the first. forked: baseline with a process for each session.",
        "worker, search: the task with its processes, ended ones too.",
        "System calls are those that were carried out, not those that the monitor answered.",
    ]
    if results["size"]["rounds"] == 1:
        lines.append("One round was measured, so there are no intervals: do not rely on these figures.")
    busy = [series for series, share in results["driver_share"].items() if share > SATURATED]
    if busy:
        lines.append(f"The load generator limited the sessions per second of {', '.join(busy)}: they can be more.")
    if results["live"] is not None:
        lines += _live(results["live"])
    return lines


def _live(live: Mapping[str, Any]) -> list[str]:
    if live["live"] == 0:
        return [f"No live session could be held: {live['limit']}"]
    pipelines = f"{live['pipelines']} pipeline" + "s" * (live["pipelines"] != 1)
    held = f"{live['live']} live idle sessions in {pipelines}"
    ended = f"{live['revoked']} of them revoked at once: {live['revoked_ms']:.1f} ms to the last refused open"
    lines = [
        f"{held}, {live['memory_kib_per_session']} KiB of memory per session.",
        f"{ended} (the monitor's answer came after {live['answered_ms']:.1f} ms).",
    ]
    return lines if live["limit"] is None else [*lines, f"There are not {live['wanted']}: {live['limit']}"]


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _interval(found: Mapping[str, float | None]) -> str:
    low, high = found["low"], found["high"]
    return _NOTHING if low is None or high is None else f"{three_digits(low)} … {three_digits(high)}"
