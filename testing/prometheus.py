# SPDX-License-Identifier: BSD-2-Clause
"""A real Prometheus for tests, on loopback, with data that a test has written down."""

from __future__ import annotations

import http
import subprocess
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testing import waiting
from testing.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START_SECONDS = 60.0


def store(exposition: str, place: Path) -> Path:
    """Make a database in ``place`` from samples with times in OpenMetrics' text; return its directory."""
    text, data = place / "samples.txt", place / "data"
    text.write_text(exposition)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return data


@contextmanager
def running(data: Path, configured: str = "scrape_configs: []\n") -> Iterator[str]:
    """Run a Prometheus over a database, by default one that scrapes nothing; yield its URL."""
    configuration = data.parent / "prometheus.yml"
    configuration.write_text(configured)
    port = free_port()
    log = data.parent / "prometheus.log"
    command = [
        "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=10y",
    ]  # fmt: skip
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            waiting.until(lambda: _answers(process, log, f"{url}/-/ready"), "Prometheus is ready", _START_SECONDS)
            yield url
        finally:
            process.terminate()
            process.wait()


def _answers(process: subprocess.Popen[bytes], log: Path, url: str) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310, on loopback
            return bool(answer.status == http.HTTPStatus.OK)
    except OSError:
        return False
