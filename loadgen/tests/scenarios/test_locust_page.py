# SPDX-License-Identifier: BSD-2-Clause
"""Locust's page: it shows what only Shai knows, and does nothing for anybody but the user who has started it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from loadgen.stacks.ports import free_port
from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE

START = "user_count=2&spawn_rate=1"
UNSETTABLE = [
    *(("results", "DIR"), ("html_file", "DIR/x"), ("json_file", "DIR/x"), ("csv_prefix", "DIR/x"), ("output", "json")),
    *(("seed", "2"), ("host", "http://127.0.0.1:9"), ("host", ""), ("profile", "x"), ("headless", "true")),
    *(("user_classes", "SearchUser"), ("shape_class", "Default"), ("unknown", "\x1b</script>")),
]


@dataclass
class Page:
    port: int
    password: str
    errors: Path
    results: Path
    process: subprocess.Popen[str]

    def ask(self, path: str, form: str | None = None, password: str | None = None, **fields: str) -> tuple[int, str]:
        """Ask as the page's user, unless fields of the request say otherwise."""
        known = base64.b64encode(f"shai:{self.password if password is None else password}".encode()).decode()
        head = {"Authorization": f"Basic {known}", **{name.title(): value for name, value in fields.items()}}
        method = "GET"
        if form is not None:
            method, head["Content-Type"] = "POST", "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, form, head)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    @property
    def state(self) -> str:
        return str(json.loads(self.ask("/stats/requests")[1])["state"])


@pytest.fixture
def page(server: FakeSysE, data: Path, tmp_path: Path) -> Iterator[Page]:
    port, errors, results = free_port(), tmp_path / "errors", tmp_path / "results"
    words = [sys.executable, "-m", "locust", "-f", "loadgen/scenarios/steady.py", "--data", str(data)]
    words += ["--host", f"http://127.0.0.1:{server.server_port}", "--web-port", str(port)]
    words += ["--run-time", "2s", "--results", str(results)]
    with (
        errors.open("w") as log,
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        until(lambda: listens(port) or process.poll() is not None, "the page", 60)
        told = re.search(r"user shai, password (\S+)$", errors.read_text(), re.MULTILINE)
        assert told is not None, errors.read_text()
        try:
            yield Page(port, told[1], errors, results, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)


def listens(port: int) -> bool:
    """Whether the page is there, on loopback only."""
    held = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    assert f"0.0.0.0:{port}" not in held
    return bool(held)


def test_the_page_has_what_only_shai_knows(page: Page, server: FakeSysE) -> None:
    assert '"extended_tabs": [{"key": "shai", "title": "Shai"}]' in page.ask("/")[1]
    # As the form sends it.
    form = f"{START}&host=http%3A%2F%2F127.0.0.1%3A{server.server_port}&run_time=2s&profile="
    assert json.loads(page.ask("/swarm", form, origin=f"http://localhost:{page.port}")[1])["success"]
    until((page.results / "result.json").exists, "the end of a run", 60)
    (table,) = json.loads(page.ask("/stats/requests")[1])["extended_stats"]
    assert table["data"][-1]["shown"] == f"{len(server.searched):,}"
    page.process.send_signal(signal.SIGINT)
    output, _ = page.process.communicate(timeout=300)
    assert "whole run" in output
    assert "Traceback" not in page.errors.read_text()


def test_nobody_else_can_use_the_page(page: Page) -> None:
    foreign = {"origin": "http://evil.example"}
    neighbour = {"origin": f"http://localhost:{page.port + 1}"}
    refused = {
        401: [{"password": ""}, {"password": "shai"}, {"authorization": "Bearer x"}, {"authorization": "Basic \xff"}],
        403: [foreign, neighbour, {"origin": "null"}, {"host": f"evil.example:{page.port}"}, {"host": "localhost"}],
    }
    for status, requests in refused.items():
        for fields in requests:
            assert page.ask("/swarm", START, **fields)[0] == status, fields
    for path in ("/", "/stats/requests", "/logs", "/assets/favicon-dark.png"):
        assert page.ask(path, authorization="")[0] == 401, path
    assert page.ask("/", host=f"evil.example:{page.port}")[0] == 403
    assert page.state == "ready"


def test_the_form_sets_only_the_load(page: Page, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    for name, value in UNSETTABLE:
        status, text = page.ask("/swarm", f"{START}&{urlencode({name: value.replace('DIR', str(there))})}")
        assert (status, repr(name) in text) == (403, True), (name, text)
    assert page.ask("/swarm", f"{START}&host=http%3A%2F%2F127.0.0.1%3A9&host=b")[0] == 403
    assert page.ask("/user", '{"user_class_name": "SearchUser", "host": "http://127.0.0.1:9"}')[0] == 403
    assert page.state == "ready"
    assert not there.exists()
