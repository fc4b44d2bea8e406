# SPDX-License-Identifier: BSD-2-Clause
"""Stands in for the monitor, so that what measures and shows can be tested alone.

    fake_shai.py monitor …    a monitor whose tasks are plain processes, unconfined
    fake_shai.py COMMAND …    its command line

Every command is carried out by the monitor's process, reached through its socket.
"""

from __future__ import annotations

import json
import signal
import socketserver
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import yaml

from loadgen.stacks.monitor import UnixConnection
from loadgen.stacks.stack import SERVING

METRICS = """# HELP shai_interceptions_total Times a task involved the reference monitor, by kind.
# TYPE shai_interceptions_total counter
shai_interceptions_total{{kind="accept",pipeline="syse"}} {count}
shai_interceptions_total{{kind="send",pipeline="syse-baseline"}} 0
"""
DENIAL = {"conduit": "/corpus/private/bob/7.txt", "allowed": False, "operation": "read", "policy": "private(bob)"}


class FakeMonitor(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, socket: str, data: Path) -> None:
        super().__init__(socket, _Handler)
        self.data = data
        self.pipelines: dict[str, dict[str, Any]] = {}
        self.tasks: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self.reads = 0

    def do_apply(self, *words: str) -> Any:
        path = Path(words[words.index("-f") + 1])
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] == "Pipeline":
                self.pipelines[document["metadata"]["name"]] = document["spec"]
        return {"objects": []}

    def status(self) -> Any:
        return {
            "pipelines": [
                {"name": name, "mode": spec["mode"], "tasks": self._tasks(name)}
                for name, spec in self.pipelines.items()
            ]
        }

    def _tasks(self, pipeline: str) -> list[dict[str, Any]]:
        running = {task: process.pid for (owner, task), process in self.tasks.items() if owner == pipeline}
        found = [{"name": task, "run": "Always", "pid": running.get(task, 0)} for task in SERVING]
        return [{"name": "indexer", "run": "Once"}, *found]

    def do_analyze(self, *_: str) -> Any:
        return {"conduits": 100, "classes": 9, "instances": 12}

    def do_pipeline(self, _mode: str, name: str, mode: str, *_: str) -> Any:
        self.pipelines[name]["mode"] = mode

    def do_task(self, action: str, pipeline: str, task: str, *_: str) -> Any:
        if action == "stop":
            process = self.tasks.pop((pipeline, task))
            process.terminate()
            process.wait()
        elif task == "indexer":
            time.sleep(0.3)
        else:
            self.tasks[pipeline, task] = subprocess.Popen(self._command(pipeline, task), start_new_session=True)

    def do_audit(self, *_: str) -> Any:
        return [DENIAL]

    def _command(self, pipeline: str, task: str) -> list[str]:
        if task != "worker":
            return ["sleep", "600"]
        spec = self.pipelines[pipeline]
        listen = next(conduit["listen"] for conduit in spec["conduits"] if conduit["kind"] == "connection")
        fault = next(variable["value"] for variable in spec["variables"] if variable["name"] == "FAULT")
        words = [sys.executable, "-m", "loadgen.tests.fake_syse", "--data", str(self.data)]
        words += ["--port", listen.rpartition(":")[2]]
        return [*words, "--leaky"] if fault != "none" and spec["mode"] == "baseline" else words


class _Handler(BaseHTTPRequestHandler):
    server: FakeMonitor

    def do_GET(self) -> None:
        if self.path == "/v1/status":
            self._answer(200, json.dumps(self.server.status()).encode())
            return
        self.server.reads += 1
        self._answer(200, METRICS.format(count=self.server.reads * 100).encode())

    def do_POST(self) -> None:
        words = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer = getattr(self.server, f"do_{words[0]}")(*words[1:])
        except (LookupError, OSError) as error:
            self._answer(500, repr(error).encode())
        else:
            self._answer(200, json.dumps(answer).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, *_: object) -> None:
        pass


def monitor(words: list[str]) -> int:
    server = FakeMonitor(words[words.index("--socket") + 1], Path(words[words.index("--data") + 1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server.serve_forever()
    finally:
        for process in server.tasks.values():
            process.terminate()
    return 0


def configure(directory: Path) -> int:
    """Write the files of `shai keyvalue configure`, which needs no monitor."""
    directory.mkdir(exist_ok=True)
    files = {name: str(directory / name) for name in ("configuration", "secrets", "socket")}
    socket = files["socket"]
    Path(files["configuration"]).write_text(
        f'port 0\nunixsocket "{socket}"\ndir "{directory}"\nsave ""\nuser m on >p ~* +@all\n'
    )
    Path(files["secrets"]).write_text('{"AuthCommand": "AUTH", "Administrator": "m", "Password": "p"}')
    print(json.dumps(files))
    return 0


def command(words: list[str]) -> int:
    at = words.index("--socket")
    connection = UnixConnection(Path(words[at + 1]))
    try:
        connection.request("POST", "/", json.dumps(words[:at]))
    except OSError as error:
        print(f"no monitor: {error}", file=sys.stderr)
        return 1
    answer = connection.getresponse()
    print(answer.read().decode(), file=sys.stdout if answer.status == 200 else sys.stderr)
    return int(answer.status != 200)


def main() -> int:
    words = sys.argv[1:]
    if words[0] == "keyvalue":
        return configure(Path(words[words.index("--directory") + 1]))
    return monitor(words) if words[0] == "monitor" else command(words)


if __name__ == "__main__":
    sys.exit(main())
