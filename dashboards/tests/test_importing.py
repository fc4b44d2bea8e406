# SPDX-License-Identifier: BSD-2-Clause
"""Import into a Grafana: a small server answers as Grafana's API is documented, because there is no Grafana here."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from dashboards.__main__ import main
from dashboards.boards import ALL
from testing.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = "glsa_of-a-test"  # noqa: S105, of no Grafana


@dataclass
class Standin:
    """What a Grafana knows, and how it misbehaves."""

    url: str = ""
    folders: dict[str, str] = field(default_factory=dict)
    boards: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and body by path."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with a failure."""
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any, token: str | None) -> tuple[int, str]:
        self.asked.append(f"{method} {path}")
        if path in self.fails:
            return self.fails[path]
        if token != f"Bearer {_TOKEN}":
            return 401, '{"message": "Invalid API key"}'
        if method == "GET" and path.startswith("/api/folders/"):
            uid = path.removeprefix("/api/folders/")
            if uid in self.folders:
                return 200, json.dumps({"uid": uid, "title": self.folders[uid]})
            return 404, '{"message": "folder not found", "status": "not-found"}'
        if (method, path) == ("POST", "/api/folders"):
            assert body.keys() == {"uid", "title"}
            self.folders[body["uid"]] = body["title"]
            return 200, json.dumps(body)
        assert (method, path) == ("POST", "/api/dashboards/db")
        return self._save(body)

    def _save(self, body: Any) -> tuple[int, str]:
        assert body.keys() == {"dashboard", "folderUid", "message", "overwrite"}
        assert body["folderUid"] in self.folders
        board = body["dashboard"]
        assert board["id"] is None
        if board["uid"] in self.boards and not body["overwrite"]:
            return 412, '{"message": "the dashboard has been changed by someone else", "status": "version-mismatch"}'
        self.boards[board["uid"]] = board
        return 200, json.dumps({"uid": board["uid"], "url": f"/d/{board['uid']}/board", "status": "success"})


@pytest.fixture
def grafana(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    known = Standin()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            status, text = known.answer(self.command, self.path, body, self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in known.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = handle_any  # noqa: N815, the library's names

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("GRAFANA_TOKEN", _TOKEN)
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_all_boards_arrive_in_their_folder(grafana: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "--grafana", f"{grafana.url}/", "--folder", "Data policies"]) == 0
    assert grafana.folders == {"shai": "Data policies"}
    assert list(grafana.boards) == [board.uid for board in ALL]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Overhead", f"{grafana.url}/d/shai-overhead/board"]
    assert len(lines) == len(ALL)


def test_boards_are_replaced(grafana: Standin) -> None:
    grafana.folders["shai"] = "as somebody called it"
    grafana.boards["shai-overhead"] = {"title": "old"}
    assert main(["import", "--grafana", grafana.url]) == 0
    assert grafana.folders == {"shai": "as somebody called it"}
    assert grafana.boards["shai-overhead"]["title"] == "Shai / Overhead"


@pytest.mark.parametrize(
    ("path", "status", "body", "says"),
    [
        ("/api/folders/shai", 401, '{"message": "Invalid API key"}', "Grafana does not know the token"),
        ("/api/folders", 403, '{"message": "Access denied"}', "Access denied. The token's service account may not"),
        ("/api/folders", 404, "<html>", "The address is not that of a Grafana's first page"),
        ("/api/dashboards/db", 412, '{"message": "name-exists"}', "rename or remove that one"),
        ("/api/dashboards/db", 500, "not JSON", "status 500"),
        ("/api/dashboards/db", 799, "", "status 799"),
        ("/api/dashboards/db", 200, "not JSON", "not as a Grafana"),
        ("/api/dashboards/db", 200, "[]", "not as a Grafana"),
        ("/api/dashboards/db", 200, '{"url": 7}', "not as a Grafana"),
        ("/api/dashboards/db", 400, json.dumps({"message": "\x1b[2J\u202e" + "x" * 70000}), "…"),
    ],
)
def test_refusals_say_what_to_do(
    grafana: Standin, capsys: pytest.CaptureFixture[str], path: str, status: int, body: str, says: str
) -> None:
    grafana.fails[path] = status, body
    assert main(["import", "--grafana", grafana.url]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert says in said
    assert len(said.splitlines()) == 1
    assert len(said) < 1000
    assert said.rstrip("\n").isprintable()
    assert _TOKEN not in said


def test_the_token_is_sent_to_no_other_server(grafana: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    grafana.fails["/api/folders/shai"] = HTTPStatus.FOUND, ""
    grafana.headers["Location"] = f"{grafana.url}/elsewhere"
    assert main(["import", "--grafana", grafana.url]) == 1
    assert grafana.asked == ["GET /api/folders/shai"]
    assert f"redirected to {grafana.url}/elsewhere: use that address" in capsys.readouterr().err


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GRAFANA_TOKEN", _TOKEN)
    assert main(["import", "--grafana", f"http://127.0.0.1:{free_port()}"]) == 1
    assert "no Grafana answers at http://127.0.0.1" in capsys.readouterr().err


def test_a_missing_token_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("GRAFANA_TOKEN", raising=False)
    assert main(["import", "--grafana", "http://127.0.0.1:1"]) == 1
    assert "GRAFANA_TOKEN is not set: set GRAFANA_TOKEN to" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["glsa_…", "glsa_1\nX-Header: 2"])
def test_what_is_no_token_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], grafana: Standin, token: str
) -> None:
    monkeypatch.setenv("GRAFANA_TOKEN", token)
    assert main(["import", "--grafana", grafana.url]) == 1
    assert "GRAFANA_TOKEN is no token: set GRAFANA_TOKEN to" in capsys.readouterr().err
    assert grafana.asked == []


@pytest.mark.parametrize("address", ["grafana", "ftp://grafana", "http://", "http://[", "file:///etc/passwd"])
def test_only_addresses_of_servers_are_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setenv("GRAFANA_TOKEN", _TOKEN)
    assert main(["import", "--grafana", address]) == 1
    assert "is no address" in capsys.readouterr().err
