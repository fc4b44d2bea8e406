# SPDX-License-Identifier: BSD-2-Clause
"""Stacks on another host: CPU time by what monitors export, ports that are free."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.stacks import ports
from loadgen.stacks.monitor import Monitor
from loadgen.stacks.remote import RemoteStack
from loadgen.stacks.stack import StackError

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = """# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# TYPE shai_cpu_seconds_total counter
shai_cpu_seconds_total{pipeline="syse",task="worker",part="task"} 4.25
shai_cpu_seconds_total{pipeline="syse",task="worker",part="supervisor"} 0.5
shai_cpu_seconds_total{pipeline="syse",task="search",part="task"} 2
shai_cpu_seconds_total{pipeline="syse",task="search",part="supervisor"} 0.25
shai_cpu_seconds_total{pipeline="other",task="worker",part="task"} 1000
# TYPE shai_sessions_total counter
shai_sessions_total{pipeline="syse",mode="shai"} 7
"""


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], RemoteStack]:
    def make(metrics: str) -> RemoteStack:
        monkeypatch.setattr(Monitor, "_get", lambda *_: metrics)
        return RemoteStack(Monitor(Path("/shai"), Path("/monitor.sock")), "syse", ("192.0.2.1", 80), "shai")

    return make


def test_monitors_count_the_cpu_time_of_their_tasks(stack: Callable[[str], RemoteStack]) -> None:
    found = stack(METRICS).cpu({"worker": 1, "search": 2, "idle": 3})
    assert found == {
        "worker": 4_250_000_000,
        "search": 2_000_000_000,
        "idle": 0,
        "supervisor": 750_000_000,
        "monitor": 1_500_000_000,
    }
    assert stack(METRICS).processes() == set(), "nothing of another host is pinned"


@pytest.mark.parametrize("missing", ["shai_cpu_seconds_total", "process_cpu_seconds_total"])
def test_a_monitor_that_counts_no_cpu_time_is_not_measured(stack: Callable[[str], RemoteStack], missing: str) -> None:
    metrics = "".join(f"{line}\n" for line in METRICS.splitlines() if missing not in line)
    with pytest.raises(StackError, match=r"does not count the CPU time of pipeline syse: its image is older"):
        stack(metrics).cpu({"worker": 1})


def test_the_next_port_that_nobody_listens_at_is_taken() -> None:
    with socket.create_server(("127.0.0.1", ports.free_port())) as taken:
        port = taken.getsockname()[1]
        assert ports.next_closed("127.0.0.1", port - 1) > port
