# SPDX-License-Identifier: BSD-2-Clause
"""What gets the load: the running demo by itself, or what the options name."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.driving.discovery import Discovery
from loadgen.scenarios import demonstration, targets
from loadgen.scenarios.demonstration import Demo, NoDemoError
from loadgen.scenarios.targets import Target, TargetError

if TYPE_CHECKING:
    from loadgen.tests.fake_syse import FakeSysE


def options(*words: str) -> Namespace:
    parser = ArgumentParser()
    targets.add_options(parser.add_argument_group("service"))
    return parser.parse_args(words)


@pytest.fixture
def demo(server: FakeSysE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found = {
        "host": f"http://127.0.0.1:{server.server_port}",
        "pipeline": "syse",
        "service": "search.example:80",
        "size": "smoke",
        "data": "/data",
        "socket": "/run/monitor.sock",
        "scrape": "/scrape",
        "namespace": "default",
        "prometheus": None,
    }
    path = tmp_path / "current.json"
    path.write_text(json.dumps(found))
    monkeypatch.setattr(demonstration.find, "__defaults__", (path,))
    return found


def test_the_running_demo_is_found_by_itself(demo: dict[str, Any]) -> None:
    given = options()
    assert targets.find(None, given) == Target(
        demo["host"],
        "syse",
        "search.example:80",
        Path("/data"),
        Path("/run/monitor.sock"),
        Discovery(Path("/scrape"), "shai", "default"),
        "smoke",
    )


def test_options_come_before_the_demo(demo: dict[str, Any]) -> None:
    given = options("--data", "/mine", "--pipeline", "other", "--service", "me:1", "--size", "paper", "--scrape", "/s")
    found = targets.find(demo["host"] + "/", given)
    assert (found.data, found.pipeline, found.service) == (Path("/mine"), "other", "me:1")
    assert (found.size, found.discovery) == ("paper", Discovery(Path("/s")))


def test_another_host_gets_nothing_from_the_demo(demo: dict[str, Any]) -> None:
    other = demo["host"].replace("127.0.0.1", "localhost")
    with pytest.raises(TargetError, match="is not the running demo: say with --data DIR"):
        targets.find(other, options())
    found = targets.find(other, options("--data", "/mine"))
    assert (found.service, found.socket, found.discovery, found.size) == ("", None, None, "quick")


@pytest.mark.usefixtures("demo")
def test_a_demo_that_has_ended_is_said_to_have(server: FakeSysE) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(TargetError, match=r"nothing answers at .*; the demo that was running has ended"):
        targets.find(None, options())


def test_without_a_demo_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoDemoError, match="no demo is running here: start one with `make demo KEEP=1`, or"):
        demonstration.find(tmp_path / "current.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not describe a demo"),
        (b"\xff", "does not describe a demo"),
        (b"[]", "expected an object"),
        (b'{"host": "http://x", "pipeline": "p"}', "data"),
        (b'{"host": 5, "pipeline": "p", "data": "/d"}', "host is not a text: 5"),
        (b'{"host": "h", "pipeline": "p", "data": "/d", "size": "huge"}', "size 'huge' is none of smoke, "),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "current.json"
    path.write_bytes(content)
    with pytest.raises(NoDemoError, match=says):
        demonstration.find(path)


def test_what_a_later_demo_adds_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "current.json"
    path.write_text(json.dumps({"host": "h", "pipeline": "p", "data": "/d", "kubeconfig": {"a": 1}}))
    assert demonstration.find(path) == Demo("h", "p", Path("/d"))
