# SPDX-License-Identifier: BSD-2-Clause
"""A running monitor with the pipeline "diaries", whose users and documents a test names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from testing import waiting
from testing.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterable

SHAI = Path(__file__).resolve().parents[2] / "build/bin/shai"
_DIARY = """\
policy diary(owner) {
  read :- sKeyIs(owner).
  read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
}
"""
_SESSION = "policy session(name, region) { read :- sKeyIs(name), sRegionIs(region). }"
_READS = """\
import sys
for name in sys.argv[1:]:
  try: print(name, open(name).read())
  except OSError as refused: print(name, refused.strerror)
"""
_FIRST_USER, _USERS = 3_000_000, 20


class Diaries:
    """The monitor. Its task ``courier`` may read what is alice's, and tries to read all documents."""

    def __init__(
        self, base: Path, *, friends: Iterable[str], documents: Iterable[str], port: int = 0, mode: str = "shai"
    ) -> None:
        self.base = base
        self.mode = mode
        self.documents = list(documents)
        self.link = base / "state/page-link"
        self._friends = list(friends)
        for name in self.documents:
            path = base / "data" / name.removeprefix("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("dear diary\n")
        first = _FIRST_USER + _USERS * (os.getpid() % 10_000)
        with (base / "monitor.log").open("wb") as log:
            self._process = subprocess.Popen(
                [SHAI, "monitor", "--data", base / "data", "--state", base / "state", "--socket", base / "s.sock",
                 "--page", f"127.0.0.1:{port}", "--task-ids", f"{first}-{first + _USERS - 1}",
                 "--task-id-registry", base / "ids.json",
                 "--runtime", "system=/bin,/usr/bin,/usr/lib,/lib,/lib64"],
                stdout=log, stderr=log,
            )  # fmt: skip
        waiting.until(lambda: (base / "s.sock").exists() and self.link.exists(), "the monitor serves the page")

    def call(self, *arguments: str | Path) -> Any:
        """Run a command and return its JSON output."""
        command = [SHAI, *arguments, "--socket", self.base / "s.sock", "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def prepare(self) -> None:
        """Apply the pipeline and analyse it."""
        manifests = self.base / "manifests.yaml"
        manifests.write_text(yaml.safe_dump_all(self._manifests(), allow_unicode=False))
        self.call("apply", "-f", manifests)
        self.call("analyze")

    def deliver(self) -> None:
        """Run the courier, which is refused what is not alice's."""
        self.call("task", "start", "diaries", "courier", "--wait")

    def end(self) -> None:
        """End the monitor and its tasks."""
        self._process.terminate()
        assert self._process.wait(60) == 0, (self.base / "monitor.log").read_text()

    def _manifests(self) -> list[dict[str, Any]]:
        homes = [[name, "de"] for name in ("alice", "bob", "carol", *self._friends)]
        facts = [
            {"conduit": "friends/alice", "says": "friend", "tuples": [[name] for name in ("bob", *self._friends)]},
            {"conduit": "population", "says": "home", "tuples": homes},
            {"conduit": "regions", "says": "prefix", "tuples": [["127.0.0.0/8", "de"]]},
        ]
        worker = {
            "run": "Always", "command": ["/bin/true"], "runtimeName": "system",
            "parameters": ["user", "region"], "reads": ["alice", "bob"], "writes": ["web"],
            "taint": {"name": "session", "arguments": {"name": "{user}", "region": "{region}"}},
        }  # fmt: skip
        courier = {
            "run": "Once",
            "command": ["/usr/bin/python3", "-Ic", _READS, *(f"{self.base}/data{name}" for name in self.documents)],
            "runtimeName": "system", "reads": ["alice"],
            "taint": {"name": "diary", "arguments": {"owner": "alice"}},
        }  # fmt: skip
        conduits = [
            *({"name": owner, "kind": "file", "directory": True, "ingress": True, "paths": [
                {"path": f"/diary/{owner}/**", "policy": {"name": "diary", "arguments": {"owner": owner}}}]}
              for owner in ("alice", "bob")),
            {"name": "web", "kind": "connection", "egress": True, "listen": f"127.0.0.1:{free_port()}",
             "task": "worker"},
        ]  # fmt: skip
        pipeline = {
            "mode": self.mode, "revocation": "lazy", "tasks": ["worker", "courier"], "conduits": conduits,
            "expect": [{"task": "worker", "from": {
                "conduit": "population", "says": "home", "parameters": ["user", "region"]}}],
        }  # fmt: skip
        specs = [
            ("Policy", "diary", {"text": _DIARY}), ("Policy", "session", {"text": _SESSION}),
            ("FactSource", "facts", {"inline": facts}), ("Task", "worker", worker), ("Task", "courier", courier),
            ("Pipeline", "diaries", pipeline),
        ]  # fmt: skip
        return [
            {"apiVersion": "shai.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, name, spec in specs
        ]
