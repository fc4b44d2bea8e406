# SPDX-License-Identifier: BSD-2-Clause
"""What a panel and a board are, whoever draws them. Pure data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a panel shows its queries."""

    TIMESERIES = "timeseries"
    """Lines over time."""
    STAT = "stat"
    """One large number for each result at the end of the range."""
    NAMES = "names"
    """The name of each result at the end of the range; its value says nothing."""
    TABLE = "table"
    """A row for each combination of the columns' labels, a further column for each query."""
    BAR = "bar"
    """Bars of one query: groups by the label `across`, a bar for each value of the label `by`."""
    STATES = "states"
    """A strip of states over time for each result."""
    FLOW = "flow"
    """A graph: the first query has the nodes (labels id, title), the second the edges (id, source, target)."""
    TEXT = "text"
    """The description, as Markdown; no queries."""

    @property
    def instant(self) -> bool:
        """Whether the queries are evaluated at the end of the range only."""
        return self not in {Kind.TIMESERIES, Kind.STATES}


@dataclass(frozen=True)
class Query:
    """A PromQL expression with Grafana's variables."""

    expr: str
    legend: str = ""
    """Names a result: {{label}} stands for a label's value. In a table: the column's heading, and without one there is
    no column of values."""
    unit: str = ""
    """Unit of this query's values in Grafana's names; the panel's if empty."""


@dataclass(frozen=True)
class Column:
    """A label that a table shows."""

    label: str
    title: str
    board: str = ""
    """The board that a click on a value leads to, with the value as its variable of the label's name."""


@dataclass(frozen=True)
class Limit:
    """From a value on, a number is shown in the colour of a level; over time, a line of that colour is there."""

    value: float
    level: str


@dataclass(frozen=True)
class Panel:
    """One picture with its queries."""

    id: str
    """Unique within its board; part of links and of the table of exceptions."""
    title: str
    description: str
    kind: Kind
    unit: str
    """In Grafana's names: s, reqps, percentunit, short, …"""
    queries: tuple[Query, ...] = ()
    columns: tuple[Column, ...] = ()
    across: str = ""
    by: str = ""
    numbered: bool = False
    """The groups of bars are numbers, and stand in their order."""
    colours: str = ""
    """Group of dashboards.colours in which the results' names are looked up."""
    limits: tuple[Limit, ...] = ()
    states: tuple[tuple[str, str, str], ...] = ()
    """Number, text and level of values that stand for a state."""
    more: str = ""
    """The board that says more, such as pool."""
    stacked: bool = False
    decimals: int | None = None


VARIABLES = ("cluster", "namespace", "pipeline", "mode", "member")
"""What a board's user chooses from; all by default."""

_VARIABLE = re.compile(r"\$(?:\{)?([a-z]+)")


def variables(panel: Panel) -> frozenset[str]:
    """Return the variables that a panel's queries use."""
    used = {name for query in panel.queries for name in _VARIABLE.findall(query.expr)}
    return frozenset(used & set(VARIABLES))


@dataclass(frozen=True)
class Row:
    """Panels beside each other under a heading: each with its width in 24ths of the page, all equally high."""

    height: int
    panels: tuple[tuple[str, int], ...]
    heading: str = ""


@dataclass(frozen=True)
class Event:
    """An annotation: a line in all panels."""

    name: str
    expr: str
    text: str
    level: str
    at_value: bool = False
    """The query's value is the moment, in milliseconds; otherwise each moment that has a value."""


@dataclass(frozen=True)
class Board:
    """A dashboard: where its panels stand."""

    uid: str
    title: str
    question: str
    """What it answers, in a sentence."""
    panels: tuple[Panel, ...]
    rows: tuple[Row, ...]
    events: tuple[Event, ...] = ()
    range: str = "now-1h"
