# SPDX-License-Identifier: BSD-2-Clause
"""Announcing the metrics in a directory that may hold anything."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import gevent
import pytest

from loadgen.driving.discovery import Discovery
from loadgen.driving.exporting import AnnouncementError, announced, served
from loadgen.driving.metrics import OK, Tally, TallyCollector
from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NAME = f"loadgen-{os.getpid()}.json"

HOLDER = """
import sys
from pathlib import Path
from loadgen.driving.discovery import Discovery
from loadgen.driving.exporting import announced
with announced(Discovery(Path(sys.argv[1])), 4711):
    print("announced", flush=True)
    sys.stdin.read()
"""


def start_holder(directory: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HOLDER, str(directory)]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "announced\n"
    return process


def names(directory: Path) -> set[str]:
    return {path.name for path in (directory / "targets").iterdir()}


def test_the_file_is_there_while_the_process_lives(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with announced(Discovery(tmp_path, "rack", "team"), 4711):
            path = tmp_path / "targets" / NAME
            assert json.loads(path.read_text()) == [
                {
                    "targets": ["127.0.0.1:4711"],
                    "labels": {"job": "shai-loadgen", "cluster": "rack", "namespace": "team"},
                }
            ]
            assert stat.S_IMODE(path.stat().st_mode) == 0o644
            assert names(tmp_path) == {NAME}
    finally:
        os.umask(before)
    assert names(tmp_path) == set()


def test_files_of_killed_processes_are_removed_and_others_kept(tmp_path: Path) -> None:
    killed, alive = start_holder(tmp_path), start_holder(tmp_path)
    killed.kill()
    killed.communicate()
    targets = tmp_path / "targets"
    (targets / "operator.json").write_text("[]")
    with announced(Discovery(tmp_path), 1):
        assert names(tmp_path) == {NAME, f"loadgen-{alive.pid}.json", "operator.json"}
    alive.communicate("")
    assert names(tmp_path) == {"operator.json"}


LOCKER = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.lockf(file, fcntl.LOCK_SH)
print("locked", flush=True)
sys.stdin.read()
"""


def test_who_may_only_read_the_file_cannot_keep_it(tmp_path: Path) -> None:
    """Whatever locks another user has: Prometheus would ask at the port of a killed process for ever."""
    killed = start_holder(tmp_path)
    killed.kill()
    killed.communicate()
    file = tmp_path / "targets" / f"loadgen-{killed.pid}.json"
    words = [sys.executable, "-c", LOCKER, str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as locker:
        assert locker.stdout is not None
        assert locker.stdout.readline() == "locked\n"
        with announced(Discovery(tmp_path), 1):
            assert names(tmp_path) == {NAME}
        locker.communicate("")


def test_what_is_no_announcement_is_left_alone(tmp_path: Path) -> None:
    targets = tmp_path / "targets"
    targets.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (targets / "loadgen-1.json").symlink_to(precious)
    (targets / "loadgen-2.json").mkdir()
    os.mkfifo(targets / "loadgen-3.json")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(targets / "loadgen-4.json"))
        others = [
            "loadgen-5.json.bak",
            "loadgen-.json",
            "loadgen-x.json",
            "loadgen-\n.json",
            "loadgen-../x.json"[:11],
            "ö.json",
        ]
        for name in others:
            (targets / name).write_text("")
        before = names(tmp_path)
        with announced(Discovery(tmp_path), 1):
            assert names(tmp_path) == before | {NAME}
        assert names(tmp_path) == before
    assert precious.read_text() == "precious"


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    targets = tmp_path / "targets"
    targets.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (targets / NAME).symlink_to(precious)
    (targets / f".{NAME}.new").symlink_to(precious)
    with announced(Discovery(tmp_path), 1):
        assert not (targets / NAME).is_symlink()
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_directory_that_is_none_is_an_error(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "targets").write_text("")
    else:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "targets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AnnouncementError, match="are not announced"), announced(Discovery(tmp_path), 1):
        pass


def test_that_it_cannot_be_announced_does_not_stop_the_load(tmp_path: Path) -> None:
    (tmp_path / "targets").write_text("")
    warnings: list[str] = []
    with served(TallyCollector(Tally(), dict), Discovery(tmp_path), warnings.append) as exporter:
        assert exporter.port > 0
    assert len(warnings) == 1


def scrape(port: int) -> str:
    job = gevent.get_hub().threadpool.spawn(
        lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    )
    return str(job.get())


def test_it_waits_until_the_last_counts_are_read(tmp_path: Path) -> None:
    tally = Tally()
    with served(TallyCollector(tally, dict), Discovery(tmp_path), print) as exporter:
        tally["spike", "syse", ""].queries[OK] += 1
        assert exporter.await_last_scrape(0.0)  # nobody reads
        assert 'result="ok",scenario="spike"} 1.0' in scrape(exporter.port)
        assert exporter.await_last_scrape(0.0)
        tally["spike", "syse", ""].queries[OK] += 1
        assert not exporter.await_last_scrape(0.0)
        late = gevent.spawn(scrape, exporter.port)
        assert exporter.await_last_scrape(60.0)
        assert 'result="ok",scenario="spike"} 2.0' in late.get()


@pytest.mark.parametrize("counter", ["queries", "sessions", "accesses", "topics", "advertisements"])
def test_it_waits_for_counts_of_every_kind(tmp_path: Path, counter: str) -> None:
    tally = Tally()
    with served(TallyCollector(tally, dict), Discovery(tmp_path), print) as exporter:
        scrape(exporter.port)
        getattr(tally["spike", "syse", ""], counter)[OK] += 1
        assert not exporter.await_last_scrape(0.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes a port below 1024")
def test_no_ordinary_user_can_answer_in_place_of_root(tmp_path: Path) -> None:
    with served(TallyCollector(Tally(), dict), Discovery(tmp_path), print) as exporter:
        assert exporter.port < 1024
