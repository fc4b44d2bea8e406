# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's process, with a fake Sys-E in another process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.driving.beside import Desk, Document, Interests
from loadgen.driving.discovery import Discovery
from loadgen.driving.orders import Crew, Driver, DriverError, Order, Outcome
from loadgen.phases import level
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadgen.datasets.population import Population
    from loadgen.tests.fake_syse import FakeSysE


@pytest.fixture(scope="module")
def host(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "loadgen.tests.fake_syse", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


@pytest.fixture(scope="module")
def driver(data: Path) -> Iterator[Driver]:
    command = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        Driver(process.stdin, process.stdout) as running,
    ):
        yield running
    assert process.returncode == 0


def outcome_of(driver: Driver, order: Order, enough: Callable[[Outcome], bool], *, failing: bool = False) -> Outcome:
    """Run slices until the machine has given the users enough time in one of them."""

    def tried() -> Outcome | None:
        outcome = driver.run(order)
        assert failing or outcome.failures == 0, outcome.errors
        return outcome if enough(outcome) else None

    found: Outcome = until(tried, f"a slice in which the users have enough time: {order}")
    return found


@pytest.mark.parametrize("length", [1, 8])
def test_sessions_are_complete(driver: Driver, host: str, length: int) -> None:
    order = Order(host, "syse", host.removeprefix("http://"), session_length=length, seconds=0.3, users=4, seed=1)
    outcome = outcome_of(driver, order, lambda found: found.sessions > 0)
    assert outcome.queries == outcome.sessions * length
    assert outcome.search_milliseconds["p50"] <= outcome.search_milliseconds["p99"]


def test_unlimited_sessions_last_for_the_slice(driver: Driver, host: str) -> None:
    order = Order(host, "syse", host.removeprefix("http://"), session_length=0, seconds=0.3, users=4, seed=1)
    outcome = outcome_of(driver, order, lambda found: found.sessions >= 4 and found.queries > 8)
    assert outcome.sessions == 4


def test_several_processes_share_the_users_and_their_counts_add_up(data: Path, server: FakeSysE) -> None:
    with contextlib.ExitStack() as stack:
        drivers = []
        for _ in range(3):
            command = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
            process = stack.enter_context(
                subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            drivers.append(stack.enter_context(Driver(process.stdin, process.stdout)))
        crew, to = Crew(drivers), server.front_end
        order = Order(to.url, to.pipeline, to.service, session_length=4, seconds=0.5, users=5, seed=1)
        outcome = crew.run(order)
        assert outcome.failures == 0, outcome.errors
        assert outcome.queries == len(server.searched) == 4 * outcome.sessions
        assert outcome.sessions == len(server.logins) >= 5
        assert outcome.counted.query_times.count == outcome.queries
        again = crew.run(replace(order, users=2))
    assert again.queries == len(server.searched) - outcome.queries, "each slice counts its own"
    assert [share.users for share in order.shares(3)] == [2, 2, 1]
    assert [share.users for share in replace(order, users=2).shares(3)] == [1, 1], "nobody is left for the third"


def test_users_come_and_go_as_the_phases_say(driver: Driver, server: FakeSysE) -> None:
    phases = (level("few", 0.5, 0.25), level("all", 0.5, 1.0))
    to = server.front_end
    order = Order(to.url, to.pipeline, to.service, session_length=0, seconds=2.0, users=8, seed=1, phases=phases)
    outcome = driver.run(order)
    assert (outcome.sessions, outcome.failures) == (8, 0), "two users at first, and six more in the second half"
    assert outcome.queries == len(server.searched), "nothing is lost when users leave"
    down = replace(order, phases=(level("all", 0.5, 1.0), level("few", 0.5, 0.25)))
    outcome = driver.run(replace(down, seed=2))
    assert (outcome.sessions, outcome.failures) == (8, 0)


def test_a_dead_server_is_reported(driver: Driver) -> None:
    order = Order("http://127.0.0.1:9", "syse", "127.0.0.1:9", session_length=1, seconds=0.2, users=2, seed=1)
    outcome = outcome_of(driver, order, lambda found: bool(found.errors), failing=True)
    assert outcome.queries == 0
    assert outcome.failures >= 2
    assert "refused" in outcome.errors[0]


def test_an_ended_process_is_an_error(data: Path) -> None:
    command = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data / "missing")]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process,
        pytest.raises(DriverError, match="expected 'ready'"),
    ):
        Driver(process.stdin, process.stdout)


def test_what_was_sent_is_what_is_exported(data: Path, host: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data)]
    words += Discovery(tmp_path, "rack", "team").words
    service = host.removeprefix("http://")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        with Driver(process.stdin, process.stdout) as running:
            sent: dict[str, tuple[int, int]] = {}
            for mode, length in (("shai", 1), ("baseline", 8), ("shai", 8)):
                order = Order(host, "syse", service, session_length=length, seconds=0.3, users=3, seed=1, mode=mode)
                outcome = running.run(order)
                before = sent.get(mode, (0, 0))
                sent[mode] = (before[0] + outcome.queries, before[1] + outcome.sessions)
            (announced,) = json.loads((tmp_path / "targets" / f"loadgen-{process.pid}.json").read_text())
            assert announced["labels"] == {"job": "shai-loadgen", "cluster": "rack", "namespace": "team"}
            (target,) = announced["targets"]
            text = scraped(target)
        process.wait()
    assert list((tmp_path / "targets").iterdir()) == []
    found = {
        mode: (counted(text, "shai_load_queries_total", mode), counted(text, "shai_load_sessions_total", mode))
        for mode in sent
    }
    assert found == sent


SCRAPE_SECONDS = 2.0
"""A slice takes far less than Prometheus waits between scrapes: without a wait for it, none sees the last counts."""


@pytest.mark.parametrize("beside", ["desk", "interests"])
def test_what_happens_once_is_answered_when_prometheus_has_read_it(
    data: Path, server: FakeSysE, people: Population, tmp_path: Path, beside: str
) -> None:
    words = [sys.executable, "-m", "loadgen.driving.driver", "--data", str(data), *Discovery(tmp_path).words]
    to = server.front_end
    order = Order(to.url, to.pipeline, to.service, session_length=1, seconds=0.3, users=2, seed=1, mode="shai")
    if beside == "desk":  # this service shows no documents: that the support fails is counted, too
        order = replace(order, desk=Desk(to.url, to.service, (people["bob"],), (Document(1, "/a", "a"),)))
    else:
        order = replace(order, interests=Interests(to.url, to.service, 1, ("moon",), {}))
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        Driver(process.stdin, process.stdout) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        ((target,),) = (
            entry["targets"] for file in (tmp_path / "targets").iterdir() for entry in json.loads(file.read_text())
        )
        last = scraped(target)
        answer = pool.submit(running.run, order)
        while wait([answer], timeout=SCRAPE_SECONDS).not_done:
            last = scraped(target)
        outcome = answer.result()
    assert outcome.queries > 0
    assert counted(last, "shai_load_queries_total", "shai") == outcome.queries
    accesses = sum(outcome.counted.accesses.values())
    assert accesses == (1 if beside == "desk" else 0)
    assert counted(last, "shai_load_accesses_total", "shai", "failed") == accesses


def scraped(target: str) -> str:
    return str(urllib.request.urlopen(f"http://{target}/metrics", timeout=60).read().decode())


def counted(text: str, name: str, mode: str, result: str = "ok") -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and (sample.labels["mode"], sample.labels["result"]) == (mode, result)
    )
