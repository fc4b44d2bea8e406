# SPDX-License-Identifier: BSD-2-Clause
"""Thresholds that fail a run: ``overhead>5%``, ``p99>50ms``, ``failures>0``, ``p99{phase=spike}>200ms``.

A threshold is a quantity, labels in braces if it means some of the rows only, a comparison, a number and its unit. The
run fails when the comparison holds for a row.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from loadgen.errors import PublicError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Kind(StrEnum):
    """What a quantity is measured in."""

    RATIO = "a ratio"
    TIME = "a time"
    COUNT = "a number"
    RATE = "a number per second"


@dataclass(frozen=True)
class Quantity:
    """Something that is measured."""

    kind: Kind
    meaning: str
    compared: bool = False
    """Whether it says how a mode compares with mode baseline, so that only a Benchmark measures it."""


QUANTITIES = MappingProxyType(
    {
        "overhead": Quantity(Kind.RATIO, "CPU time per query that the mode adds to mode baseline", compared=True),
        "throughput_overhead": Quantity(
            Kind.RATIO, "share of the queries per second that the mode takes", compared=True
        ),
        "cpu_added_per_query": Quantity(Kind.TIME, "CPU time that the mode adds to a query", compared=True),
        "cpu_added_per_session": Quantity(Kind.TIME, "CPU time that the mode adds to a session", compared=True),
        "p50": Quantity(Kind.TIME, "half of all searches are answered in this time"),
        "p90": Quantity(Kind.TIME, "90 % of all searches are answered in this time"),
        "p99": Quantity(Kind.TIME, "99 % of all searches are answered in this time"),
        "login_p50": Quantity(Kind.TIME, "half of all logins are answered in this time"),
        "login_p90": Quantity(Kind.TIME, "90 % of all logins are answered in this time"),
        "login_p99": Quantity(Kind.TIME, "99 % of all logins are answered in this time"),
        "failures": Quantity(Kind.COUNT, "searches and logins that were not answered, or wrongly, and violations"),
        "failure_ratio": Quantity(Kind.RATIO, "their share of all searches and logins"),
        "violations": Quantity(Kind.COUNT, "documents that were shown and must not be"),
        "checked": Quantity(Kind.COUNT, "searches that could have been violations"),
        "queries_per_second": Quantity(Kind.RATE, "searches that were answered"),
        "sessions_per_second": Quantity(Kind.RATE, "logins that succeeded"),
    }
)

LABELS = MappingProxyType(
    {
        "mode": ("shai", ""),
        "phase": ("",),
        "session_length": None,
    }
)
"""The labels of rows, each with the values that are meant where a threshold does not name it; None: all."""

_UNITS = {
    Kind.RATIO: {"%": 0.01},
    Kind.TIME: {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0},
    Kind.COUNT: {"": 1.0},
    Kind.RATE: {"": 1.0, "/s": 1.0},
}
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_LONGEST = 200


class ThresholdError(PublicError):
    """Not a threshold; the text has the place and what is expected there."""


@dataclass(frozen=True)
class Row:
    """What was measured in one part of a run: the labels of the part, and quantities in seconds, ratios and counts.

    A label that a row does not have is empty. A quantity that was not measured is left out, or not a number.
    """

    labels: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Judgement:
    """What a threshold says of a run."""

    threshold: Threshold
    exceeded: bool
    """Also when nothing was measured that it could be compared with."""
    message: str


@dataclass(frozen=True)
class Threshold:
    """A limit of a quantity, in rows with these labels."""

    quantity: str
    labels: tuple[tuple[str, str], ...]
    comparison: str
    number: str
    unit: str

    def __str__(self) -> str:
        """Return the threshold in the form that `parse` reads."""
        selected = ",".join(f'{name}="{value}"' for name, value in self.labels)
        braces = f"{{{selected}}}" if selected else ""
        return f"{self.quantity}{braces}{self.comparison}{self.number}{self.unit}"

    @property
    def compared(self) -> bool:
        """Whether it needs a measurement beside mode baseline."""
        return QUANTITIES[self.quantity].compared

    @property
    def limit(self) -> float:
        """The limit in seconds, as a ratio, or as a count."""
        return float(self.number) * _UNITS[QUANTITIES[self.quantity].kind][self.unit]

    def judge(self, rows: Sequence[Row]) -> Judgement:
        """Say whether the run exceeded the threshold, and where."""
        found = [(row, row.values.get(self.quantity, math.nan)) for row in rows if self._means(row)]
        measured = [(row, value) for row, value in found if not math.isnan(value)]
        if not measured:
            return Judgement(self, True, f"{self}: nothing was measured that this is about")  # noqa: FBT003 - its field
        beyond = [(row, value) for row, value in measured if _COMPARISONS[self.comparison](value, self.limit)]
        said = "; ".join(self._say(row, value) for row, value in beyond or measured)
        return Judgement(self, bool(beyond), f"{self}: {said}")

    def _means(self, row: Row) -> bool:
        named = dict(self.labels)
        for label, usual in LABELS.items():
            value = row.labels.get(label, "")
            if (value != named[label]) if label in named else (usual is not None and value not in usual):
                return False
        return True

    def _say(self, row: Row, value: float) -> str:
        where = ", ".join(f"{name} {found}" for name, found in sorted(row.labels.items()) if found)
        return f"{shown(self.quantity, value)}{f' ({where})' if where else ''}"


def shown(quantity: str, value: float) -> str:
    """Return a value of a quantity for people."""
    kind = QUANTITIES[quantity].kind
    if kind is Kind.TIME:
        return f"{value * 1e3:.3g} ms" if abs(value) >= 1e-3 else f"{value * 1e6:.3g} µs"  # noqa: PLR2004 - a millisecond
    if kind is Kind.RATIO:
        return f"{value * 100:.3g} %"
    return f"{value:.0f}" if kind is Kind.COUNT else f"{value:.1f}/s"


def parse(text: str) -> Threshold:
    """Read a threshold; ThresholdError names the place of what cannot be understood."""
    if len(text) > _LONGEST:
        raise ThresholdError(f"{text[:40]!r}…: longer than the {_LONGEST} characters that a threshold may have")
    reader = _Reader(text)
    start = reader.at
    quantity = reader.take(r"[a-z][a-z0-9_]*", "a quantity")
    if quantity not in QUANTITIES:
        raise reader.error(f"expected one of {', '.join(QUANTITIES)}", start)
    labels = _labels(reader)
    comparison = reader.take(r">=|<=|>|<", "a comparison: >, >=, < or <=")
    number = reader.take(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", "a number")
    place = reader.at
    unit = reader.take(r"(?:%|/s|[a-zµ]+)?", "a unit")
    units = _UNITS[QUANTITIES[quantity].kind]
    if unit not in units:
        raise reader.error(f"{quantity} is {QUANTITIES[quantity].kind}: expected {_either(units)}", place)
    reader.end()
    return Threshold(quantity, labels, comparison, number, unit)


def _labels(reader: _Reader) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    if not reader.skip(r"\{"):
        return ()
    while True:
        start = reader.at
        name = reader.take(r"[a-z_]+", "a label")
        if name not in LABELS or name in found:
            raise reader.error(f"expected one of {', '.join(set(LABELS) - set(found))}, each once", start)
        reader.take("=", "“=”")
        found[name] = _value(reader)
        if not reader.skip(","):
            break
    reader.take(r"\}", "“}” or “,”")
    return tuple(sorted(found.items()))


def _value(reader: _Reader) -> str:
    """Read a value: it becomes a label and part of an alert, so no character in it misleads who reads that."""
    if not reader.skip('"'):
        return reader.take("[A-Za-z0-9_.-]+", "a value")
    value = reader.take("[A-Za-z0-9_. -]*", "a value", spaces=False)
    reader.take('"', '“"”, or a letter from a to z, a digit, a space, “_”, “.” or “-”', spaces=False)
    return value


def _either(units: Mapping[str, float]) -> str:
    return " or ".join(repr(unit) if unit else "no unit" for unit in units)


class _Reader:
    """Reads a text from left to right; spaces may stand anywhere between two parts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def at(self) -> int:
        """The place of the next part."""
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1
        return self._at

    def skip(self, pattern: str) -> bool:
        """Skip a part if it is there; return whether it was."""
        found = re.compile(pattern).match(self._text, self.at)
        self._at = found.end() if found else self._at
        return found is not None

    def take(self, pattern: str, expected: str, *, spaces: bool = True) -> str:
        """Return the next part, before which there may be spaces; ThresholdError when it is another one."""
        found = re.compile(pattern).match(self._text, self.at if spaces else self._at)
        if not found:
            raise self.error(f"expected {expected}", self._at)
        self._at = found.end()
        return found.group()

    def end(self) -> None:
        """Raise ThresholdError when something follows."""
        if self.at < len(self._text):
            raise self.error("expected nothing more", self._at)

    def error(self, expected: str, at: int) -> ThresholdError:
        """Return an error at a place."""
        found = repr(self._text[at : at + 20]) if at < len(self._text) else "the end"
        return ThresholdError(f"{self._text!r}: at character {at + 1}: {expected}; found {found}")
