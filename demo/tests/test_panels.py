# SPDX-License-Identifier: BSD-2-Clause
"""What the load generators have sent is what the panels show, by a real Prometheus that has the demo's job for them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dashboards import rules
from dashboards.boards import ALL
from dashboards.verifying.prometheus import Prometheus, Scope
from loadgen.datasets import population
from loadgen.tests.data import write_data
from loadgen.tests.fake_syse import FakeSysE
from testing import prometheus as servers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
EVERY, SECONDS, RANGE = 0.5, 12, 600.0
"""Seconds between two scrapes, of a run, and of the range that is shown."""
JOBS: list[dict[str, Any]] = yaml.safe_load((rules.FILES[0].parent / "prometheus.yml").read_text())["scrape_configs"]


class Run:
    """A Prometheus that has seen two runs: one that was answered, and one whose searches all failed."""

    def __init__(self, place: Path, url: str) -> None:
        self.prometheus = Prometheus(url)
        self.data = write_data(place / "data")
        self.answered = self.sent(place, "")
        self.failed = self.sent(place, "status")
        self.end = time.time()

    def sent(self, place: Path, misbehave: str) -> int:
        """Run a scenario; return how many searches reached the service."""
        with FakeSysE(population.load(self.data)) as server:
            server.misbehave = misbehave
            words = [sys.executable, "-m", "loadgen", "scenario", "steady", "--users", "3", "--workers", "2"]
            words += ["--host", f"http://127.0.0.1:{server.server_port}", "--data", str(self.data)]
            words += ["--scrape", str(place), "--run-time", f"{SECONDS}s", "--results", str(place / "results")]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == (3 if misbehave else 0), done.stderr
            return len(server.searched)

    def shown(self, board: str, panel: str, scope: Scope | None = None) -> dict[str, tuple[float, ...]]:
        """Return what the first query of a panel shows, by mode."""
        (found,) = (made for made in ALL if made.uid == board)
        ((query, *_),) = (one.queries for one in found.panels if one.id == panel)
        shown = self.prometheus.over_time(query.expr, scope or Scope(self.end, RANGE, 4 * EVERY))
        return {series.labels.get("mode", ""): series.values for series in shown}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    place = tmp_path_factory.mktemp("scrape")
    (place / "targets").mkdir()  # Prometheus watches it
    (job,) = (one for one in JOBS if one["job_name"] == "shai-loadgen")
    settings = {"global": {"scrape_interval": f"{1000 * EVERY:.0f}ms"}, "scrape_configs": [job]}
    with servers.running(place / "database", yaml.safe_dump(settings)) as url:
        yield Run(place, url)


def test_every_failure_is_counted(run: Run) -> None:
    assert run.failed > 100
    assert run.shown("shai-benchmark", "failed")[""][-1] == run.failed


def test_what_was_counted_before_the_range_is_not_in_it(run: Run) -> None:
    """Of two ranges of which one ends where the other begins, each has its part of the failures."""
    raw = 'shai_load_queries_total{result="failed"}'
    scope = Scope(run.end, RANGE, 4 * EVERY)
    values = next(one.values for one in run.prometheus.over_time(raw, scope) if one.values[-1] == run.failed)
    parts = [
        run.shown("shai-benchmark", "failed", Scope(run.end, seconds, 4 * EVERY)).get("", (0.0,))[-1]
        for seconds in range(1, 120)
    ]
    assert parts == sorted(parts)
    assert parts[-1] == run.failed
    assert {run.failed - value for value in values} & {part for part in parts if 0 < part < run.failed}


def test_the_rate_is_that_of_the_searches(run: Run) -> None:
    """Over the time, it adds up to what was counted between the first scrape and the last one."""
    counted = 'shai_load_queries_total{result="ok"}'
    scope = Scope(run.end, RANGE, 4 * EVERY)
    values = [one.values for one in run.prometheus.over_time(counted, scope) if one.values[-1] > 0]
    assert [one[-1] for one in values] == [run.answered]
    (rates,) = (one for mode, one in run.shown("shai-overhead", "throughput").items() if mode == "by-hand")
    step = max(min(EVERY, RANGE / 60), RANGE / 10_000, 1.0)
    assert sum(rates) * step == pytest.approx(run.answered - values[0][0], rel=0.15)
