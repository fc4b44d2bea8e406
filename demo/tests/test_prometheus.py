# SPDX-License-Identifier: BSD-2-Clause
"""The demo's Prometheus: a real one, with the rules, that is not root."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from demo import prometheus
from demo.workspace import Workspace
from loadgen.stacks import processes
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import ProcessFailedError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the demo runs as root")


@pytest.fixture
def place() -> Iterator[Workspace]:
    """Make a workspace that an ordinary user can reach."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        made = Workspace(ROOT, Path(folder), "smoke")
        made.logs.mkdir()
        prometheus.prepare(made)
        for name in ("ca.pem", "client.pem", "client.key"):
            (made.scrape / "tls" / name).touch()
        yield made


def answer(url: str) -> Any:
    with urlopen(url) as response:  # noqa: S310 - of the server that the test has started
        return json.load(response)["data"]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_it_has_the_rules_and_is_an_ordinary_user(place: Workspace) -> None:
    with Supervisor() as supervisor:
        url = prometheus.start(place, supervisor, ("127.0.0.1", free_port())).url
        groups = answer(f"{url}/api/v1/rules")["groups"]
        assert {Path(group["file"]).name for group in groups} == {"recording.yml", "alerts.yml"}
        (pid,) = [pid for pid in processes.descendants(os.getpid()) if command(pid) == "prometheus"]
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        assert processes.affinities([pid])[pid] == processes.split_cores()[1]
    assert not Path(f"/proc/{pid}").exists()


def test_the_key_is_for_its_group_only(place: Workspace) -> None:
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (place.scrape, place.scrape / "tls")}
    assert modes == {"scrape": 0o2750, "tls": 0o2750}
    assert (place.scrape / "tls" / "client.key").stat().st_gid == place.scrape.stat().st_gid != 0


def test_an_earlier_run_leaves_nothing_in_it(place: Workspace) -> None:
    (place.scrape / "targets" / "members.json").write_text("[]")
    prometheus.prepare(place)
    assert not list((place.scrape / "targets").iterdir())


def test_one_that_does_not_start_says_why(place: Workspace) -> None:
    (place.scrape / "prometheus.yml").write_text("no such field: 1\n")
    with Supervisor() as supervisor, pytest.raises(ProcessFailedError, match="field no such field not found"):
        prometheus.start(place, supervisor, ("127.0.0.1", free_port()))


def test_a_machine_without_it_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prometheus.is_installed()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert not prometheus.is_installed()
