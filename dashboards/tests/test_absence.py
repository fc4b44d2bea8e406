# SPDX-License-Identifier: BSD-2-Clause
"""What panels show when something is not there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from dashboards.boards import ALL
from dashboards.verifying.prometheus import Prometheus, Scope
from testing import prometheus as servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dashboards.verifying.prometheus import Series

_END = 1_800_000_000
_SCOPE = Scope(_END, 300, rate_seconds=60)
_MONITOR = 'job="shai-monitor",member="m-0"'
_SERIES = {
    f"up{{{_MONITOR}}}": 0.0,
    f'shai_sessions_total{{{_MONITOR},pipeline="syse",mode="shai"}}': 0.0,
    f'shai_cpu_seconds_total{{{_MONITOR},pipeline="syse",task="t",part="task"}}': 1.0,
    f'shai_cpu_seconds_total{{{_MONITOR},pipeline="syse",task="t",part="supervisor"}}': 1.0,
    f"process_cpu_seconds_total{{{_MONITOR}}}": 1.0,
}
"""How much series grow in a second: a monitor gives no answer any more, and no session has ended before."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    lines = []
    for series, speed in _SERIES.items():
        lines.append(f"# TYPE {series.partition('{')[0].removesuffix('_total')} unknown")
        lines += [f"{series} {speed * (15 + age)} {_END - 300 + age}" for age in range(0, 301, 15)]
    with servers.running(servers.store("\n".join([*lines, "# EOF", ""]), tmp_path_factory.mktemp("data"))) as url:
        yield Prometheus(url)


def shown(server: Prometheus, board: str, panel: str) -> list[Series]:
    (found,) = (known for one in ALL if one.uid == board for known in one.panels if known.id == panel)
    return [series for query in found.queries for series in server.over_time(query.expr, _SCOPE)]


def test_without_sessions_the_time_of_a_session_is_not_infinite(server: Prometheus) -> None:
    found = [value for series in shown(server, "shai-overhead", "cpu-session") for value in series.values]
    assert not [value for value in found if math.isinf(value)]


def test_monitors_that_do_not_answer_are_none_and_not_unknown(server: Prometheus) -> None:
    (found,) = shown(server, "shai-pool", "deciding")
    assert set(found.values) == {0}
