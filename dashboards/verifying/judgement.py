# SPDX-License-Identifier: BSD-2-Clause
"""Whether panels show something."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dashboards.verifying.exceptions import REASONS
from dashboards.verifying.prometheus import PrometheusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dashboards.model import Board, Panel
    from dashboards.verifying.prometheus import Prometheus, Scope, Series


class State(StrEnum):
    """What a query returns over a range."""

    DATA = "data"
    ZERO = "only zeros"
    NOTHING = "nothing"
    REFUSED = "refused"


def state(found: Iterable[Series]) -> State:
    """Return what results amount to. NaN and infinity are what a division by zero gives, so they are nothing."""
    values = [value for series in found for value in series.values if math.isfinite(value)]
    if not values:
        return State.NOTHING
    return State.DATA if any(values) else State.ZERO


@dataclass(frozen=True)
class Verdict:
    """What a panel shows."""

    board: str
    panel: str
    state: State
    """The worst of its queries."""
    text: str
    """Which query it is, and why."""
    reason: str
    """Why the panel need not show anything; empty if it must."""

    @property
    def good(self) -> bool:
        """Whether the panel shows something, or its reason for showing nothing is known."""
        return self.state == State.DATA or (bool(self.reason) and self.state != State.REFUSED)


_WORST = (State.REFUSED, State.NOTHING, State.ZERO, State.DATA)


def judge(board: Board, panel: Panel, prometheus: Prometheus, scope: Scope) -> Verdict:
    """Run the queries of a panel."""
    found = []
    for query in panel.queries:
        try:
            found.append((state(prometheus.over_time(query.expr, scope)), query.legend or query.expr))
        except PrometheusError as error:
            found.append((State.REFUSED, str(error)))
    worst = min((outcome for outcome, _ in found), key=_WORST.index)
    text = "" if worst == State.DATA else "; ".join(shown for outcome, shown in found if outcome == worst)
    return Verdict(board.uid, panel.id, worst, text, REASONS.get((board.uid, panel.id), ""))


def verdicts(boards: Iterable[Board], prometheus: Prometheus, scope: Scope) -> Iterator[Verdict]:
    """Run the queries of all panels, one after the other. Raises PrometheusError when there is no Prometheus."""
    prometheus.over_time("vector(1)", scope)
    for board in boards:
        for panel in board.panels:
            if panel.queries:
                yield judge(board, panel, prometheus, scope)
