# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.stacks import monitor

METRICS = """# HELP shai_sessions_total Sessions that have ended.
# TYPE shai_sessions_total counter
shai_sessions_total{mode="shai",pipeline="syse"} 7
# HELP shai_interceptions_total Times a task involved the reference monitor, by kind.
# TYPE shai_interceptions_total counter
shai_interceptions_total{kind="accept",pipeline="syse"} 24
shai_interceptions_total{kind="send",pipeline="syse"} 1e+06
shai_interceptions_total{kind="send",pipeline="syse-baseline"} 3
"""


def test_interceptions_of_one_pipeline() -> None:
    assert monitor.interceptions(METRICS, "syse") == {"accept": 24, "send": 1_000_000}
    assert monitor.interceptions(METRICS, "syse-baseline") == {"send": 3}
    assert monitor.interceptions("", "syse") == {}


def test_a_monitor_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = monitor.Monitor(Path("/bin/false"), tmp_path / "shai.sock")
    with pytest.raises(monitor.MonitorError, match=r"shai\.sock.*is it running"):
        gone.interceptions("syse")
    with pytest.raises(monitor.MonitorError, match=r"shai\.sock"):
        gone.tasks("syse")
    assert not gone.is_ready()
