# SPDX-License-Identifier: BSD-2-Clause
"""The processes of a run, among other users of the machine who reach the master's port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]
import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from loadgen.stacks.ports import free_port
from loadgen.stacks.processes import descendants
from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE

SERIES = {"queries": {"ok": 1000000, "failed": 0}, "sessions": {"ok": 5}, "documents": [7, 0, 3, 9]}
TIMES = {"query_times": [{"0": 1000000}, 10.0], "login_times": [{"0": 5}, 1.0]}
# Without details: the other side, which does not like the offer either, hung up first.
FAILED = {zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL}
MESSAGES = [
    ("client_ready", "2.0"),
    ("scenario", {"users": 0, "tally": [["steady", "syse", "", SERIES | TIMES]]}),
    ("exception", {"msg": "forged", "traceback": ""}),
    ("quit", None),
]


def command(server: FakeSysE, data: Path, port: int, *options: str) -> list[str]:
    words = [sys.executable, "-m", "locust", "-f", "loadgen/scenarios/steady.py", "--headless", "--data", str(data)]
    words += ["--host", f"http://127.0.0.1:{server.server_port}", "--users", "4", "--run-time", "4s"]
    return [*words, "--master-bind-port", str(port), "--master-port", str(port), *options]


@pytest.fixture
def stranger() -> Iterator[zmq.Socket[bytes]]:
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.identity = b"stranger"
    yield socket
    context.destroy(linger=0)


@pytest.mark.parametrize("encrypted", [False, True])
def test_strangers_are_not_heard(
    server: FakeSysE, data: Path, tmp_path: Path, stranger: zmq.Socket[bytes], *, encrypted: bool
) -> None:
    port = free_port()
    if encrypted:  # with another key
        own_public, own_secret = zmq.curve_keypair()
        stranger.setsockopt(zmq.CURVE_PUBLICKEY, own_public)
        stranger.setsockopt(zmq.CURVE_SECRETKEY, own_secret)
        stranger.setsockopt(zmq.CURVE_SERVERKEY, zmq.curve_keypair()[0])
    stranger.connect(f"tcp://127.0.0.1:{port}")
    words = command(server, data, port, "--processes", "2", "--results", str(tmp_path))
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        ended = threading.Event()

        def forge() -> None:
            while not ended.wait(0.2):
                for kind, content in MESSAGES:
                    with contextlib.suppress(zmq.Again):  # the connection was refused
                        stranger.send(msgpack.dumps((kind, content, "stranger")), zmq.NOBLOCK)

        forging = threading.Thread(target=forge)
        forging.start()
        try:
            _, errors = process.communicate(timeout=300)
        finally:
            ended.set()
            forging.join()
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
    assert found["parts"][-1]["queries"] == len(server.searched) > 0
    assert found["workers"] == 2
    assert found["errors"] == {}
    assert stranger.poll(0) == 0  # and are told nothing


def test_workers_follow_no_other_master(server: FakeSysE, data: Path) -> None:
    context = zmq.Context()
    false = context.socket(zmq.ROUTER)
    events = false.get_monitor_socket()
    port = false.bind_to_random_port("tcp://127.0.0.1")
    words = command(server, data, port, "--worker")
    environment = {**os.environ, "SHAI_LOADGEN_KEY": "k" * 64}
    with subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            assert _first_handshake(events) in FAILED
        finally:
            process.kill()
            context.destroy(linger=0)


@pytest.mark.parametrize("role", ["--master", "--worker"])
def test_processes_of_several_machines_need_a_key(server: FakeSysE, data: Path, role: str) -> None:
    words = command(server, data, free_port(), role)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("locust: --master and --worker need a key of 32 characters or more")


def test_workers_end_with_their_master(server: FakeSysE, data: Path) -> None:
    words = command(server, data, free_port(), "--processes", "2")
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: len(server.searched) > 0, "a search")
        workers = list(descendants(process.pid))
        assert len(workers) == 2
        process.send_signal(signal.SIGKILL)
    until(lambda: not any(_lives(pid) for pid in workers), "the end of the workers")


def _first_handshake(events: zmq.Socket[bytes]) -> int:
    while events.poll(60_000):
        event = recv_monitor_message(events)["event"]
        if event in FAILED or event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            return int(event)
    raise AssertionError("the worker has not connected")


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
