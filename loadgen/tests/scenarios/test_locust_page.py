# SPDX-License-Identifier: BSD-2-Clause
"""Locust's page: it shows what only Shai knows, and does nothing for anybody but the user who has started it."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from loadgen.driving import serving
from loadgen.scenarios import site
from loadgen.stacks.ports import free_port
from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.tests.fake_syse import FakeSysE
    from testing.browser import Browser

TOLD = re.compile(
    r"^The page is at http://(\S+):(\d+)/ and asks for a password: user shai, password (\S+)$", re.MULTILINE
)
START = "user_count=2&spawn_rate=1"
UNSETTABLE = [
    *(("results", "DIR"), ("html_file", "DIR/x"), ("json_file", "DIR/x"), ("csv_prefix", "DIR/x"), ("output", "json")),
    *(("seed", "2"), ("host", "http://127.0.0.1:9"), ("host", ""), ("profile", "x"), ("headless", "true")),
    *(("user_classes", "SearchUser"), ("shape_class", "Default"), ("unknown", "\x1b</script>")),
]


WORKER = b"""
addEventListener("install", () => skipWaiting());
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => event.respondWith(
  fetch("/stats/requests").then(answer => new Response("forged: " + answer.status))));
"""
REGISTRATION = b"""<!doctype html><link rel="icon" href="data:,"><script>
navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)
  .then(() => document.title = "kept", error => document.title = error);
</script>"""


class Occupant(http.server.ThreadingHTTPServer):
    """Has ended when it is closed, with the connections that a browser has opened in advance."""

    daemon_threads = False


class Before(http.server.BaseHTTPRequestHandler):
    timeout = 1

    def do_GET(self) -> None:
        worker = self.path == "/worker.js"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if worker else "text/html")
        self.end_headers()
        self.wfile.write(WORKER if worker else REGISTRATION)

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Page:
    name: str
    port: int
    password: str
    errors: Path
    results: Path
    process: subprocess.Popen[str]

    def ask(
        self,
        path: str,
        form: str | None = None,
        password: str | None = None,
        address: str = "127.0.0.1",
        **fields: str,
    ) -> tuple[int, str]:
        """Ask as the page's user, unless fields of the request say otherwise."""
        known = base64.b64encode(f"shai:{self.password if password is None else password}".encode()).decode()
        head = {"Host": f"{self.name}:{self.port}", "Authorization": f"Basic {known}"}
        head |= {name.title(): value for name, value in fields.items()}
        method = "GET"
        if form is not None:
            method, head["Content-Type"] = "POST", "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(address, self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, form, head)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    @property
    def state(self) -> str:
        return str(json.loads(self.ask("/stats/requests")[1])["state"])


@pytest.fixture
def command(server: FakeSysE, data: Path) -> list[str]:
    words = [sys.executable, "-m", "locust", "-f", "loadgen/scenarios/steady.py", "--data", str(data)]
    return [*words, "--host", f"http://127.0.0.1:{server.server_port}", "--run-time", "2s"]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def page(command: list[str], port: int, tmp_path: Path) -> Iterator[Page]:
    errors, results = tmp_path / "errors", tmp_path / "results"
    words = [*command, "--web-port", str(port), "--results", str(results)]
    with (
        errors.open("w") as log,
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        until(lambda: listens(port) or process.poll() is not None, "the page", 60)
        told = until(lambda: TOLD.search(errors.read_text()), "the page's address", 60)
        assert int(told[2]) == port
        try:
            yield Page(told[1], port, told[3], errors, results, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)


def listens(port: int) -> set[str]:
    """Return the addresses at which something listens on a port."""
    held = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3] for line in held.splitlines()}


def test_the_page_has_what_only_shai_knows(page: Page, server: FakeSysE) -> None:
    assert '"extended_tabs": [{"key": "shai", "title": "Shai"}]' in page.ask("/")[1]
    # As the form sends it.
    form = f"{START}&host=http%3A%2F%2F127.0.0.1%3A{server.server_port}&run_time=2s&profile="
    assert json.loads(page.ask("/swarm", form, origin=f"http://{page.name}:{page.port}")[1])["success"]
    until((page.results / "result.json").exists, "the end of a run", 60)
    (table,) = json.loads(page.ask("/stats/requests")[1])["extended_stats"]
    assert table["data"][-1]["shown"] == f"{len(server.searched):,}"
    page.process.send_signal(signal.SIGINT)
    output, _ = page.process.communicate(timeout=300)
    assert "whole run" in output
    assert "Traceback" not in page.errors.read_text()


def test_nobody_else_can_use_the_page(page: Page) -> None:
    foreign = {"origin": "http://evil.example"}
    neighbour = {"origin": f"http://{page.name}:{page.port + 1}"}
    names = [f"{name}:{page.port}" for name in ("localhost", "127.0.0.1", "[::1]", "evil.example", f"a.{page.name}")]
    refused = {
        401: [{"password": ""}, {"password": "shai"}, {"authorization": "Bearer x"}, {"authorization": "Basic \xff"}],
        403: [foreign, neighbour, {"origin": "null"}, {"origin": f"http://localhost:{page.port}"}],
        421: [{"host": name} for name in (*names, page.name, "")],
    }
    for status, requests in refused.items():
        for fields in requests:
            assert page.ask("/swarm", START, **fields)[0] == status, fields
    for path in ("/", "/stats/requests", "/logs", "/assets/favicon-dark.png"):
        assert page.ask(path, authorization="")[0] == 401, path
    for name in names:
        assert page.ask("/", host=name)[0] == 421, name
    assert page.ask("/", **foreign)[0] == 403
    assert page.state == "ready"


def test_the_page_is_at_both_addresses_of_loopback_and_no_other(page: Page) -> None:
    assert listens(page.port) == {f"127.0.0.1:{page.port}", f"[::1]:{page.port}"}
    assert re.fullmatch(r"[0-9a-f]{32}\.localhost", page.name)
    assert page.ask("/", address="::1") == page.ask("/")
    assert f"Starting web interface at http://{page.name}:{page.port}," in page.errors.read_text()


def test_the_page_does_not_start_beside_another_one(command: list[str]) -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")):
        with socket.create_server((address, 0), family=family) as twin:
            port = twin.getsockname()[1]
            said = refused([*command, "--web-port", str(port)])
        assert said.startswith(f"locust: cannot serve the page at port {port} of "), address
        assert "--web-port" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--web-host", "localhost"], "--web-host: the page is for this machine only"),
        (["--web-host", "10.0.0.1"], "ssh -L 8089:localhost:8089"),
        (["--web-host", "*"], "Leave it out"),
        (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "no certificate has its name"),
    ],
)
def test_the_page_cannot_be_put_elsewhere(command: list[str], options: list[str], says: str) -> None:
    assert says in refused([*command, *options])


def refused(words: list[str]) -> str:
    """Return what locust says when it does not start."""
    done = subprocess.run(
        [*words, "--loglevel", "WARNING"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_a_machine_without_ipv6_has_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def without(address: tuple[str, int], *, family: socket.AddressFamily) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no such family")
        return create(address, family=family)

    monkeypatch.setattr(socket, "create_server", without)
    (listener,) = site.listeners(0)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_connections_without_a_password_take_no_descriptors(page: Page) -> None:
    """Any user of the machine can open them."""
    descriptors = Path(f"/proc/{page.process.pid}/fd")
    before, more = len(list(descriptors.iterdir())), serving.CONNECTIONS // 2
    with contextlib.ExitStack() as stack:
        for _ in range(serving.CONNECTIONS + more):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", page.port)))
            idle.sendall(b"GET / HT")
        assert page.state == "ready"  # this one waits for its turn
        assert len(list(descriptors.iterdir())) < before + serving.CONNECTIONS + more // 2


@pytest.fixture
def visited(port: int, browser: Browser) -> Browser:
    """Return a browser that has kept a service worker of somebody who had the port before."""
    with Occupant(("127.0.0.1", port), Before) as before:
        threading.Thread(target=before.serve_forever).start()
        try:
            browser.open(f"http://localhost:{port}/")
            until(lambda: browser.driver.title == "kept", "the service worker")
        finally:
            before.shutdown()
    return browser


def test_who_had_the_port_before_shows_nothing_in_its_place(visited: Browser, page: Page) -> None:
    visited.expect("/favicon.ico")  # the icon of a picture
    visited.open(f"http://shai:{page.password}@{page.name}:{page.port}/assets/favicon-dark.png")
    visited.open(f"http://{page.name}:{page.port}/")
    until(lambda: "Start new load test" in visited.text(), "the page")
    assert "forged" not in visited.text()
    visited.expect("421")
    visited.open(f"http://localhost:{page.port}/")
    assert visited.text() == "forged: 421"  # with nothing of the page


def test_the_form_sets_only_the_load(page: Page, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    for name, value in UNSETTABLE:
        status, text = page.ask("/swarm", f"{START}&{urlencode({name: value.replace('DIR', str(there))})}")
        assert (status, repr(name) in text) == (403, True), (name, text)
    assert page.ask("/swarm", f"{START}&host=http%3A%2F%2F127.0.0.1%3A9&host=b")[0] == 403
    assert page.ask("/user", '{"user_class_name": "SearchUser", "host": "http://127.0.0.1:9"}')[0] == 403
    assert page.state == "ready"
    assert not there.exists()
