# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's metrics: what they are called, how they are counted, and how Prometheus reads them."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.core import Metric as Family

OK, FAILED, REVOKED, REFUSED = "ok", "failed", "revoked", "refused"
"""Results of requests. Revoked: the session was ended while it waited, because its user had lost an access. Refused:
what was asked for is not allowed."""

CHOSEN, ANY = "chosen", "any"
"""How an advertisement was found: by the user's topics, or without any."""

_SCENARIO = ("scenario", "the scenario's name; empty: the plan of a Benchmark without one")
_PIPELINE = ("pipeline", "the pipeline whose service gets the load")
_MODE = ("mode", "the mode of the slice that is measured; empty: load by hand, in whatever mode the pipeline is")


@dataclass(frozen=True)
class Metric:
    """One metric, as the reference describes it."""

    name: str
    type: str
    labels: Mapping[str, str]
    """Each label with its meaning."""
    unit: str
    meaning: str


def _metric(name: str, kind: str, unit: str, meaning: str, **more: str) -> Metric:
    return Metric(name, kind, MappingProxyType({**dict((_SCENARIO, _PIPELINE, _MODE)), **more}), unit, meaning)


_QUERIES = _metric(
    "shai_load_queries_total",
    "counter",
    "queries",
    "Searches that were sent and have ended.",
    result="ok, failed, or revoked: the session was ended while it waited, because its user had lost an access",
)
_SESSIONS = _metric(
    "shai_load_sessions_total", "counter", "sessions", "Sessions that tried to log in.", result="ok or failed"
)
_QUERY_SECONDS = _metric("shai_load_query_seconds", "histogram", "seconds", "Time to the answer of a search.")
_LOGIN_SECONDS = _metric("shai_load_login_seconds", "histogram", "seconds", "Time to the answer of a login.")
_RESULTS = _metric("shai_load_results_total", "counter", "documents", "Documents that searches have shown.")
_WITHHELD = _metric(
    "shai_load_withheld_total",
    "counter",
    "documents",
    "Documents that searches have found and not shown, as the service says itself.",
)
_VIOLATIONS = _metric(
    "shai_load_violations_total", "counter", "documents", "Documents that were shown and must not be, by a policy."
)
_CHECKED = _metric(
    "shai_load_checked_total",
    "counter",
    "searches",
    "Searches by people who have lost an access, which were looked through for what they must not show.",
)
_ACCESSES = _metric(
    "shai_load_accesses_total",
    "counter",
    "documents",
    "Documents of users that employees of the support have asked for.",
    result="ok: it was read, after its entry in the log of accesses; refused; or failed",
)
_ACCESS_SECONDS = _metric(
    "shai_load_access_seconds", "histogram", "seconds", "Time to a document that the support has asked for."
)
_TOPICS = _metric(
    "shai_load_topics_total",
    "counter",
    "requests",
    "Requests that turn what a user has searched for and opened into topics.",
    result="ok, refused or failed",
)
_ADVERTISEMENTS = _metric(
    "shai_load_advertisements_total",
    "counter",
    "advertisements",
    "Advertisements that were shown to users whose topics are known.",
    found="chosen: it is about one of the user's topics; any: about another one",
)
_USERS = Metric(
    "shai_load_users",
    "gauge",
    MappingProxyType(dict((_SCENARIO, _PIPELINE))),
    "users",
    "Users that search at the same time.",
)

TABLE = (
    _QUERIES,
    _SESSIONS,
    _QUERY_SECONDS,
    _LOGIN_SECONDS,
    _RESULTS,
    _WITHHELD,
    _VIOLATIONS,
    _CHECKED,
    _ACCESSES,
    _ACCESS_SECONDS,
    _TOPICS,
    _ADVERTISEMENTS,
    _USERS,
)
"""All metrics."""

BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the histograms, in seconds."""

_FINE = sorted({*BUCKETS, *(1e-5 * 10 ** (step / 100) for step in range(701))})
"""Bounds for percentiles, from 10 µs to 100 s: neighbours differ by 2.3 %."""


@dataclass
class Times:
    """How long requests took."""

    counts: Counter[int] = field(default_factory=Counter)
    """By place among the fine bounds."""
    sum: float = 0.0
    """In seconds."""

    @property
    def count(self) -> int:
        """The number of requests."""
        return self.counts.total()

    def add(self, seconds: float) -> None:
        """Count a request."""
        self.counts[bisect.bisect_left(_FINE, seconds)] += 1
        self.sum += seconds

    def since(self, before: Times) -> Times:
        """Return what was counted after ``before``, an earlier state of it."""
        return Times(self.counts - before.counts, self.sum - before.sum)

    def percentile(self, share: float) -> float:
        """Return the time in seconds in which this share of requests (0 … 1) was answered, to 2.3 %, or nan.

        Between two bounds requests count as evenly distributed.
        """
        wanted, below = share * self.count, 0
        for place in sorted(self.counts):
            here = self.counts[place]
            if here and below + here >= wanted:
                low, high = (_FINE[max(0, min(at, len(_FINE) - 1))] for at in (place - 1, place))
                return low + (high - low) * (wanted - below) / here
            below += here
        return float("nan")

    def bounded(self) -> list[tuple[float, int]]:
        """Return the intervals in which there were requests: their upper bounds in seconds, and how many there were."""
        return [(_FINE[min(place, len(_FINE) - 1)], count) for place, count in sorted(self.counts.items()) if count]

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many requests took up to each bound of `BUCKETS`, and how many there were."""
        bounds = [bisect.bisect_left(_FINE, bound) for bound in BUCKETS]
        below = [sum(count for place, count in self.counts.items() if place <= bound) for bound in bounds]
        return [*zip(map(str, BUCKETS), map(float, below), strict=True), ("+Inf", float(self.count))]


@dataclass
class Series:
    """What was counted under the same labels."""

    queries: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    withheld: int = 0
    violations: int = 0
    checked: int = 0
    """Searches that could have been violations."""
    query_times: Times = field(default_factory=Times)
    """Of searches with result ok."""
    login_times: Times = field(default_factory=Times)
    accesses: Counter[str] = field(default_factory=Counter)
    """Of the support."""
    access_times: Times = field(default_factory=Times)
    """Of accesses with result ok."""
    topics: Counter[str] = field(default_factory=Counter)
    advertisements: Counter[str] = field(default_factory=Counter)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, for another process."""
        times = {
            name: [{str(place): count for place, count in found.counts.items()}, found.sum]
            for name, found in self._times().items()
        }
        return {
            **{name: dict(found) for name, found in self._counters().items()},
            "documents": [self.shown, self.withheld, self.violations, self.checked],
            **times,
        }

    def add(self, plain: Mapping[str, Any]) -> None:
        """Add what another process has counted."""
        for name, counter in self._counters().items():
            counter.update(plain[name])
        shown, withheld, violations, checked = plain["documents"]
        self.shown += shown
        self.withheld += withheld
        self.violations += violations
        self.checked += checked
        for name, found in self._times().items():
            counts, total = plain[name]
            found.counts.update({int(place): count for place, count in counts.items()})
            found.sum += total

    def since(self, before: Series) -> Series:
        """Return what was counted after ``before``, an earlier state of this series."""
        return Series(
            self.queries - before.queries,
            self.sessions - before.sessions,
            self.shown - before.shown,
            self.withheld - before.withheld,
            self.violations - before.violations,
            self.checked - before.checked,
            self.query_times.since(before.query_times),
            self.login_times.since(before.login_times),
            self.accesses - before.accesses,
            self.access_times.since(before.access_times),
            self.topics - before.topics,
            self.advertisements - before.advertisements,
        )

    def clear(self) -> None:
        """Forget everything; who counts here goes on counting here."""
        for counter in self._counters().values():
            counter.clear()
        self.shown = self.withheld = self.violations = self.checked = 0
        for times in self._times().values():
            times.counts.clear()
            times.sum = 0.0

    def _counters(self) -> dict[str, Counter[str]]:
        return {name: getattr(self, name) for name in _COUNTERS}

    def _times(self) -> dict[str, Times]:
        return {"query_times": self.query_times, "login_times": self.login_times, "access_times": self.access_times}


_COUNTERS = ("queries", "sessions", "accesses", "topics", "advertisements")


Labels = tuple[str, str, str]
"""Scenario, pipeline and mode."""


class Tally:
    """Everything that a process has counted, by labels. Not for several threads; greenlets may share it."""

    def __init__(self) -> None:
        self.series: dict[Labels, Series] = {}

    def __getitem__(self, labels: Labels) -> Series:
        """Return the series of these labels, made when it is missing."""
        return self.series.setdefault(labels, Series())

    def plain(self) -> list[list[Any]]:
        """Return everything as plain data."""
        return [[*labels, series.plain()] for labels, series in self.series.items()]

    def take(self) -> list[list[Any]]:
        """Return everything as plain data, and forget it: the next call returns what was counted in between."""
        taken = self.plain()
        for series in self.series.values():
            series.clear()
        return taken

    def add(self, plain: list[list[Any]]) -> None:
        """Add what another process has counted."""
        for scenario, pipeline, mode, series in plain:
            self[scenario, pipeline, mode].add(series)


class TallyCollector(Collector):
    """Shows Prometheus a tally. ``users`` returns the users that search, by scenario and pipeline."""

    def __init__(self, tally: Tally, users: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        self._tally = tally
        self._users = users

    @property
    def counted(self) -> int:
        """How many requests have been counted."""
        return sum(
            sum(getattr(series, name).total() for name in _COUNTERS) + series.violations
            for series in self._tally.series.values()
        )

    def collect(self) -> Iterator[Family]:
        """Yield all metrics."""
        everything = list(self._tally.series.items())
        queries, sessions = _counter(_QUERIES), _counter(_SESSIONS)
        documents = {
            "shown": _counter(_RESULTS),
            "withheld": _counter(_WITHHELD),
            "violations": _counter(_VIOLATIONS),
            "checked": _counter(_CHECKED),
        }
        accesses, topics, shown = _counter(_ACCESSES), _counter(_TOPICS), _counter(_ADVERTISEMENTS)
        times = {
            "query_times": _histogram(_QUERY_SECONDS),
            "login_times": _histogram(_LOGIN_SECONDS),
            "access_times": _histogram(_ACCESS_SECONDS),
        }
        for labels, series in everything:
            for family, counts, results in (
                (queries, series.queries, (OK, FAILED, REVOKED)),
                (sessions, series.sessions, (OK, FAILED)),
                (accesses, series.accesses, (OK, REFUSED, FAILED)),
                (topics, series.topics, (OK, REFUSED, FAILED)),
                (shown, series.advertisements, (CHOSEN, ANY)),
            ):
                for result in results:
                    family.add_metric([*labels, result], counts[result])
            for name, family in documents.items():
                family.add_metric(labels, getattr(series, name))
            for name, histogram in times.items():
                found: Times = getattr(series, name)
                histogram.add_metric(labels, found.buckets(), found.sum)
        users = GaugeMetricFamily(_USERS.name, _USERS.meaning, labels=list(_USERS.labels))
        for where, count in self._users().items():
            users.add_metric(where, count)
        counters = (queries, sessions, accesses, topics, shown)
        yield from itertools.chain(counters, documents.values(), times.values(), (users,))


def _counter(metric: Metric) -> CounterMetricFamily:
    return CounterMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))


def _histogram(metric: Metric) -> HistogramMetricFamily:
    return HistogramMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))
