# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a run: a page with what was measured and stopped, and how many panels of the dashboards have data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from demo import prometheus
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo.kubernetes import Cluster
    from demo.prometheus import Server
    from demo.workspace import Workspace

_OBJECTS = "configmaps,analysisruns,benchmarks,pipelines,tasks"
_SECONDS = 300.0
_RATE_SECONDS = 4 * prometheus.SCRAPE_SECONDS
"""Grafana's $__rate_interval: four scrapes."""


class ResultsError(LoadgenError):
    """The report cannot be written, or panels have no data; the text says what was wrong."""


def write(place: Workspace, cluster: Cluster, found: dict[str, Any], server: Server | None) -> None:
    """Write the report, from the cluster's objects, the leak attempt and what Prometheus has seen."""
    shutil.rmtree(place.results, ignore_errors=True)
    place.results.mkdir()
    (place.results / "objects.json").write_text(cluster.run("get", _OBJECTS, "--output", "json"))
    (place.results / "leak.json").write_text(json.dumps(found, indent=2) + "\n")
    command: list[str | Path] = [place.shai, "report", place.results, "--file", place.report]
    if server is not None:
        since = datetime.fromtimestamp(server.started, UTC).isoformat(timespec="seconds")
        every = f"{prometheus.SCRAPE_SECONDS:.0f}s"
        command += ["--prometheus", server.url, "--from", since, "--scrape-interval", every]
    done = _run(command)
    if done.returncode != 0:
        raise ResultsError(f"`shai report` failed: {done.stderr.strip()}")
    # The demo's people are invented, and whoever started it as root reads the page as somebody else.
    place.report.chmod(0o644)


def verify_panels(place: Workspace, server: Server) -> str:
    """Run the queries of all panels; return how many have data.

    With CI=true, panels that lack data without a known reason are an error.
    """
    last = f"{time.time() - server.started:.0f}s"
    rate = f"{_RATE_SECONDS:.0f}s"
    words = ("verify", "--prometheus", server.url, "--last", last, "--rate-interval", rate, "--output", "json")
    done = _run([sys.executable, "-m", "dashboards", *words], place.root)
    log = place.logs / "panels.json"
    log.write_text(done.stdout + done.stderr)
    try:
        verdicts = json.loads(done.stdout)
    except ValueError:
        raise ResultsError(f"`python -m dashboards {' '.join(words)}` failed: {done.stderr.strip()}") from None
    lacking = [f"{found['board']}/{found['panel']}" for found in verdicts if not found["good"]]
    if lacking and os.environ.get("CI") == "true":
        raise ResultsError(f"panels without data: {', '.join(lacking)}; {log} says more")
    having = sum(found["state"] == "data" for found in verdicts)
    return f"{having} of {len(verdicts)} panels of the dashboards have data"


def _run(command: Sequence[str | Path], directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. A terminal's Ctrl-C is for the demo."""
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, start_new_session=True, check=False
    )
