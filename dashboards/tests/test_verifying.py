# SPDX-License-Identifier: BSD-2-Clause
"""The command that runs the queries of all panels: what it counts as data, and what it says when it cannot run them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboards.__main__ import main
from dashboards.boards import ALL
from dashboards.grafana.exclusions import EXCLUSIONS
from dashboards.verifying import judgement
from dashboards.verifying.exceptions import REASONS
from dashboards.verifying.judgement import State, state
from dashboards.verifying.prometheus import Prometheus, Scope, Series, substitute
from testing import prometheus as servers
from testing.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "dashboards.md"
_END = 1_800_000_000
_HOSTILE = "a\"b\\c'd\n\u20ac \N{RIGHT-TO-LEFT OVERRIDE}.*|{}$mode </script>"


def exposed(text: str) -> str:
    """Return a label's value as OpenMetrics writes it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    names = (exposed(_HOSTILE), "other")
    samples = "".join(
        f'shai_sessions_active{{pipeline="{name}"}} {1 + place} {_END - age}\n'
        for place, name in enumerate(names)
        for age in (60, 30, 0)
    )
    brief = f"# TYPE shai_rollout_track_sessions gauge\nshai_rollout_track_sessions 7 {_END - 607}\n"
    text = f"# TYPE shai_sessions_active gauge\n{samples}{brief}# EOF\n"
    with servers.running(servers.store(text, tmp_path_factory.mktemp("prometheus"))) as url:
        yield url


def test_a_hostile_name_is_chosen_and_nothing_else(url: str) -> None:
    scope = Scope(_END, 60, chosen={"pipeline": _HOSTILE})
    found = Prometheus(url).over_time('shai_sessions_active{pipeline=~"$pipeline"}', scope)
    assert [series.labels["pipeline"] for series in found] == [_HOSTILE]
    others = Prometheus(url).over_time('shai_sessions_active{pipeline=~"$pipeline"}', Scope(_END, 60))
    assert "other" in [series.labels["pipeline"] for series in others]


def test_what_lasts_for_seconds_is_seen(url: str) -> None:
    """A step of a rollout is watched for 20 seconds, and half an hour is verified."""
    (found,) = Prometheus(url).over_time("last_over_time(shai_rollout_track_sessions[6s])", Scope(_END, 1800, 20))
    assert set(found.values) == {7}


def test_a_long_range_is_not_refused(url: str) -> None:
    assert Prometheus(url).over_time("shai_sessions_active", Scope(_END, 7 * 86400, 20))


def test_only_variables_are_replaced() -> None:
    expr = 'label_replace(a{b=~"$member"}[$__range], "$1", "$other")'
    assert substitute(expr, Scope(_END, 90)) == 'label_replace(a{b=~".*"}[90s], "$1", "$other")'


@pytest.mark.parametrize(
    ("values", "is_"),
    [
        ((), State.NOTHING),
        ((float("nan"),), State.NOTHING),
        ((float("inf"),), State.NOTHING),
        ((0.0, 0.0), State.ZERO),
        ((float("nan"), 0.0), State.ZERO),
        ((0.0, 1.0), State.DATA),
        ((-1.0,), State.DATA),
    ],
)
def test_zeros_are_no_data(values: tuple[float, ...], is_: State) -> None:
    assert state([Series({}, values)]) == is_


def test_a_panel_without_data_fails_unless_its_reason_is_known(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["verify", "--prometheus", url, "--end", str(_END), "--last", "1m", "--output", "json"]
    assert main(asked) == 1
    found = {(verdict["board"], verdict["panel"]): verdict for verdict in json.loads(capsys.readouterr().out)}
    assert found["shai-overhead", "active"]["state"] == "data"
    assert found["shai-overhead", "opens"]["state"] == "nothing"
    everything = dict.fromkeys(found, "nothing happens in this test")
    monkeypatch.setattr(judgement, "REASONS", everything)
    assert main(asked) == 0
    assert all(verdict["good"] for verdict in json.loads(capsys.readouterr().out))
    assert main(asked[:-2]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("NOTHING (known: nothing happens in this test)" in line for line in lines)
    assert lines[-1].endswith(", 0 should")


def test_no_prometheus_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--prometheus", f"http://127.0.0.1:{free_port()}"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: no Prometheus answers at http://127.0.0.1")
    assert len(captured.err.splitlines()) == 1
    assert not captured.out


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_other_server_is_asked(capsys: pytest.CaptureFixture[str], status: int) -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Location", "/elsewhere\x1b")
            self.end_headers()

        do_GET = do_POST = handle_any  # noqa: N815, the library's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        try:
            assert main(["verify", "--prometheus", f"http://127.0.0.1:{server.server_port}"]) == 1
        finally:
            server.shutdown()
    assert asked == ["/api/v1/query_range"]
    assert "redirected to /elsewhere\N{REPLACEMENT CHARACTER}: use that address" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["localhost:9090", "-1", "http://[", "file:///etc/passwd"])
def test_only_addresses_of_servers_are_asked(capsys: pytest.CaptureFixture[str], address: str) -> None:
    assert main(["verify", f"--prometheus={address}"]) == 1
    assert capsys.readouterr().err == f"error: {address!r} is no address: use http://HOST:PORT or https://HOST\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--last", "1 hour"], "'1 hour' is no duration: use a number and s, m, h or d"),
        (["--last", "0s"], "is no duration"),
        (["--choose", "task=x"], "'task=x' is no choice: use VARIABLE=VALUE with one of cluster"),
    ],
)
def test_wrong_options_are_explained(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--prometheus", "http://127.0.0.1:1", *options])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_reasons_are_of_panels_that_there_are() -> None:
    assert set(REASONS) <= {(board.uid, panel.id) for board in ALL for panel in board.panels}


def test_the_page_has_every_reason() -> None:
    text = " ".join(_PAGE.read_text().split())
    titles = {(board.uid, panel.id): (board.title, panel.title) for board in ALL for panel in board.panels}
    for name, reason in REASONS.items():
        board, panel = titles[name]
        assert f"| {board} | {panel} | {reason} |" in text
    for rule, reason in EXCLUSIONS.items():
        assert f"| `{rule}` | {reason} |" in text
