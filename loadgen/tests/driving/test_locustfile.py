# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE


def test_locust_by_hand(server: FakeSysE, data: Path) -> None:
    locust = shutil.which("locust") or str(ROOT / ".venv" / "bin" / "locust")
    words = [locust, "-f", "loadgen/driving/locustfile.py", "--host", f"http://127.0.0.1:{server.server_port}"]
    words += ["--data", str(data), "--session-length", "2", "--headless", "-u", "3", "-r", "3"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while len(server.logins) <= 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert len(server.logins) > 3
