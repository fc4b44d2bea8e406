# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE


def test_locust_by_hand(server: FakeSysE, data: Path) -> None:
    locust = shutil.which("locust") or str(ROOT / ".venv" / "bin" / "locust")
    words = [locust, "-f", "loadgen/driving/locustfile.py", "--host", f"http://127.0.0.1:{server.server_port}"]
    words += ["--data", str(data), "--session-length", "2", "--headless", "-u", "3", "-r", "3"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: len(server.logins) > 3 or process.poll() is not None, "more than three sessions, or the end", 60)
    finally:
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert len(server.logins) > 3
