# SPDX-License-Identifier: BSD-2-Clause
"""A picture of what was measured, as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testing.analysing.points import Measurement

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 400, 320, 64, 44, 46
_BLUE, _RED, _GREY = "#1f62b8", "#b3261e", "#6a7080"
"""As in dashboards/colours.py."""


@dataclass(frozen=True)
class _Line:
    label: str
    colour: str
    points: list[tuple[float, float]]


def picture(found: Sequence[Measurement]) -> str:
    """Draw CPU time by users, beside that of the naive product, and by documents. Both axes are logarithmic."""
    plain = [one for one in found if one.is_plain]
    listed = [one for one in found if one.processors == 1 and not one.files]
    users = [
        _Line(
            "every class tried (from a sample)", _RED, [(one.users, one.naive_per_user * one.users) for one in plain]
        ),
        _Line("Shai", _BLUE, [(one.users, one.phases["analysis"].cpu_seconds) for one in plain]),
    ]
    documents = [_Line("Shai", _BLUE, [(one.documents, one.phases["register"].cpu_seconds) for one in listed])]
    body = _panel(0, "Analysis of a population", "users", users) + _panel(
        _WIDTH, "Registration of documents", "documents", documents
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="#ffffff"/>\n'
        f"<!-- SPDX-License-Identifier: BSD-2-Clause -->\n{body}</svg>\n"
    )


def _panel(x: int, title: str, axis: str, lines: Sequence[_Line]) -> str:
    spans = [_span([point[i] for line in lines for point in line.points]) for i in (0, 1)]
    left, right, top, bottom = x + _LEFT, x + _WIDTH - 40, _TOP, _HEIGHT - _BOTTOM

    def place(point: tuple[float, float]) -> tuple[float, float]:
        shares = [(math.log10(value) - low) / (high - low) for value, (low, high) in zip(point, spans, strict=True)]
        return left + shares[0] * (right - left), bottom - shares[1] * (bottom - top)

    parts = [
        _text((left, 20), title, "start", weight="bold"),
        _text((left, 36), "CPU seconds", "start"),
        _text((right, _HEIGHT - 10), axis, "end"),
    ]
    for power in range(spans[0][0], spans[0][1] + 1):
        at = place((10.0**power, 10.0 ** spans[1][0]))
        parts += [_rule(at, (at[0], top)), _text((at[0], bottom + 16), _short(power), "middle")]
    for power in range(spans[1][0], spans[1][1] + 1):
        at = place((10.0 ** spans[0][0], 10.0**power))
        parts += [_rule(at, (right, at[1])), _text((left - 6, at[1] + 4), _short(power), "end")]
    for line in lines:
        drawn = [place(point) for point in line.points]
        parts.append(
            f'<polyline fill="none" stroke="{line.colour}" stroke-width="2" points="'
            + " ".join(f"{a:.1f},{b:.1f}" for a, b in drawn)
            + '"/>'
        )
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{line.colour}"/>' for a, b in drawn]
        parts.append(_text((drawn[-1][0], drawn[-1][1] - 9), line.label, "end", colour=line.colour))
    return "\n".join(parts) + "\n"


def _span(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _short(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _rule(start: tuple[float, float], end: tuple[float, float]) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{_GREY}" '
        'stroke-opacity="0.3"/>'
    )


def _text(at: tuple[float, float], words: str, anchor: str, *, colour: str = "#1c2230", weight: str = "normal") -> str:
    return (
        f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )
