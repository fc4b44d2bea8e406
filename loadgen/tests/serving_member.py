# SPDX-License-Identifier: BSD-2-Clause
"""A member that serves, with stand-ins for its monitor and Sys-E."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from loadgen.stacks.monitor import Monitor
from loadgen.stacks.ports import free_port
from loadgen.stacks.stack import SERVING
from loadgen.tests.data import write_data
from loadgen.tests.harness import FAKE, MARK, ROOT, left_over, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAN: dict[str, Any] = {
    "name": "test",
    "modes": ["baseline", "dynamic", "shai"],
    "rounds": 1,
    "sliceSeconds": 1,
    "sessionLengths": [0, 1],
    "warmUpSeconds": 1,
    "concurrentUsers": 4,
}
PIPELINE = """
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {{name: syse}}
spec:
  mode: shai
  variables: [{{name: FAULT, value: none}}]
  tasks: [search-back, search, worker]
  conduits:
    - name: web
      kind: connection
      listen: "$(MEMBER_ADDRESS):{port}"
      service: "$(MEMBER_ADDRESS):{port}"
      task: worker
---
""" + "---\n".join(
    f"apiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: {{{{name: {task}}}}}\nspec: {{{{run: Always}}}}\n"
    for task in SERVING
)


class ServingMember:
    """A member that serves, and measurements of it. It distinguishes its own processes from those of measurements."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(root)}
        self.monitor = Monitor(root / "image" / "bin" / "shai", root / "monitor.sock")
        self.output = root / "output"
        script(root / "image" / "bin" / "shai", f'{FAKE} "$@"')
        write_data(root / "data")
        (root / "manifests").mkdir()
        (root / "manifests" / "bundle.yaml").write_text(PIPELINE.format(port=free_port()))
        self.write(**PLAN)
        self.describe()
        self.own: set[int] = set()

    def start(self) -> subprocess.Popen[bytes]:
        words = [str(self.root / "image" / "bin" / "shai"), "monitor", "--data", str(self.root / "data")]
        process = subprocess.Popen([*words, "--socket", str(self.monitor.socket)], env=self.environment)
        while not self.monitor.is_ready():
            assert process.poll() is None
            time.sleep(0.02)
        path = self.root / "manifests" / "applied.txt"
        path.write_text((self.root / "manifests" / "bundle.yaml").read_text())
        self.monitor.call("apply", "-f", str(path))
        for task in SERVING:
            self.monitor.call("task", "start", "syse", task, "--wait")
        self.note_own()
        return process

    def note_own(self) -> None:
        """Record all present processes as the member's own."""
        self.own = set(left_over(str(self.root)))

    def describe(self, **more: Any) -> Path:
        path = self.root / "member.json"
        found = {
            "name": "main-0",
            "pipeline": "syse",
            "image": str(self.root / "image"),
            "data": str(self.root / "data"),
            "manifests": str(self.root / "manifests"),
            "monitor": {"socket": str(self.monitor.socket)},
            "variables": {"MEMBER_ADDRESS": "127.0.0.1"},
        }
        path.write_text(json.dumps(found | more))
        return path

    def write(self, **plan: Any) -> None:
        (self.root / "plan.json").write_text(json.dumps(plan))

    def measure(self, *options: str) -> subprocess.Popen[str]:
        files = {"--member": "member.json", "--plan": "plan.json", "--output": "output"}
        words = [str(word) for option, name in files.items() for word in (option, self.root / name)]
        return subprocess.Popen(
            [sys.executable, "-m", "loadgen", "benchmark", *words, *options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def progress(self) -> dict[str, Any]:
        path = self.output / "progress.json"
        return dict(json.loads(path.read_text())) if path.exists() else {"message": "", "done": 0}

    def wait_for(self, process: subprocess.Popen[str], reached: Callable[[dict[str, Any]], bool]) -> None:
        while not reached(self.progress()):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)

    def mode(self) -> str:
        return str(self.monitor.pipeline("syse")["mode"])

    def left_over(self) -> list[str]:
        return [line for pid, line in left_over(str(self.root)).items() if pid not in self.own]
