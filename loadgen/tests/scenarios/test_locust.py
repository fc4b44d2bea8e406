# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios, run as people run them: by the locust command, and by python -m loadgen scenario."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.scenarios.definitions import SCENARIOS
from loadgen.stacks.processes import descendants
from loadgen.tests.harness import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadgen.tests.fake_syse import FakeSysE

ORDINARY = [name for name, scenario in SCENARIOS.items() if not scenario.unfriending]


def at(server: FakeSysE, data: Path) -> list[str]:
    return ["--host", f"http://127.0.0.1:{server.server_port}", "--data", str(data)]


def locust(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "locust", "-f", f"loadgen/scenarios/{name}.py", "--headless", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def scenario(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "loadgen", "scenario", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", ORDINARY)
def test_scenarios_run(name: str, server: FakeSysE, data: Path, tmp_path: Path) -> None:
    done = locust(name, *at(server, data), "-u", "3", "-t", "2s", "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "result.json").read_text())
    seen = [part["phase"] for part in found["parts"]]
    # Locust looks at the shape once a second, so a busy machine may skip a short phase.
    assert seen == [phase for phase in (*(phase.name for phase in SCENARIOS[name].phases), "") if phase in seen]
    assert len(seen) >= 2
    assert found["parts"][-1]["queries"] == len(server.searched) > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_every_request_is_counted_once(server: FakeSysE, data: Path, tmp_path: Path, workers: int) -> None:
    options = ["--users", "8", "--run-time", "3s", "--workers", str(workers), "--results", str(tmp_path)]
    done = scenario("spike", *at(server, data), *options, "--output", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((tmp_path / "result.json").read_text())
    assert found["workers"] == workers
    whole = found["parts"][-1]
    assert (whole["queries"], whole["sessions"]) == (len(server.searched), len(server.logins))
    assert whole["shown"] == len(server.searched)  # the fake shows one document each time
    for name in ("queries", "sessions", "shown"):
        assert sum(part[name] for part in found["parts"][:-1]) == whole[name]
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "parts.csv", "table.txt", "locust.json"}
    statistics = json.loads((tmp_path / "locust.json").read_text())
    assert sum(one["num_requests"] for one in statistics) == len(server.searched) + len(server.logins)
    assert "Aggregated" not in done.stderr  # Locust's own table
    assert len((tmp_path / "parts.csv").read_text().splitlines()) == len(found["parts"]) + 1
    assert all(part["phase"] in (tmp_path / "table.txt").read_text() for part in found["parts"])


def test_results_that_can_no_longer_be_written_are_still_printed(server: FakeSysE, data: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = [sys.executable, "-m", "locust", "-f", "loadgen/scenarios/steady.py", "--headless", *at(server, data)]
    words += ["-u", "2", "-t", "3s", "--results", str(results), "--loglevel", "WARNING"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: len(server.searched) > 0, "a search")
        results.rmdir()
        results.write_text("kept")
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "whole run" in output
    assert "locust: cannot write the results: " in errors
    assert "Traceback" not in errors
    assert results.read_text() == "kept"


@pytest.mark.parametrize("run", [locust, scenario])
def test_results_that_cannot_be_written_are_found_before_the_load(
    server: FakeSysE, data: Path, tmp_path: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    done = run("steady", *at(server, data), "--results", str(file / "results"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f": cannot write results to {file}/results: Not a directory")
    assert (server.searched, file.read_text()) == ([], "kept")


def test_a_link_that_appears_during_the_run_is_not_followed(server: FakeSysE, data: Path, tmp_path: Path) -> None:
    precious, results = tmp_path / "precious", tmp_path / "results"
    precious.write_text("kept")
    results.mkdir()
    words = [sys.executable, "-m", "loadgen", "scenario", "steady", *at(server, data), "--results", str(results)]
    words += ["--users", "2", "--run-time", "3s"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        until(lambda: len(server.searched) > 0, "a search")
        for name in ("result.json", "parts.csv", "table.txt", "locust.json"):
            (results / name).symlink_to(precious)
    assert process.returncode == 0
    assert precious.read_text() == "kept"
    assert json.loads((results / "locust.json").read_text())


def exposed(target: str) -> dict[str, Counter[str]]:
    text = urllib.request.urlopen(f"http://{target}/metrics", timeout=60).read().decode()
    found: dict[str, Counter[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, Counter())[sample.labels.get("result", "")] += int(sample.value)
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_live_metrics_end_at_what_was_sent(server: FakeSysE, data: Path, tmp_path: Path, workers: int) -> None:
    words = [sys.executable, "-m", "loadgen", "scenario", "steady", *at(server, data), "--scrape", str(tmp_path)]
    words += ["--users", "4", "--run-time", "3s", "--workers", str(workers), "--results", str(tmp_path / "results")]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    targets = tmp_path / "targets"
    announced = until(lambda: list(targets.glob("loadgen-*.json")) if targets.exists() else [], "an announcement")
    assert len(announced) == 1  # workers do not announce themselves: what they count would be read twice
    ((target,),) = (entry["targets"] for entry in json.loads(announced[0].read_text()))
    last: dict[str, Counter[str]] = {}
    # It waits for a scrape after its last request, because this one has read it before.
    while process.poll() is None:
        try:
            last = exposed(target)
        except OSError:
            break
    assert process.wait() == 0
    assert last["shai_load_queries_total"] == Counter(ok=len(server.searched))
    assert last["shai_load_sessions_total"] == Counter(ok=len(server.logins))
    assert last["shai_load_query_seconds_count"][""] == len(server.searched)
    assert list(targets.iterdir()) == []


@pytest.mark.parametrize(
    ("threshold", "status", "says"),
    [
        ("p99>1us", 3, "exceeded  p99>1us: "),
        ("p99>1000s", 0, "within    p99>1000s: "),
        ('p50{phase="spike"}>1us', 3, "(phase spike)"),
        ("violations>0", 0, "within    violations>0: 0"),
    ],
)
def test_thresholds_decide_on_the_status(
    server: FakeSysE, data: Path, tmp_path: Path, threshold: str, status: int, says: str
) -> None:
    # Locust looks at the shape once a second: a busy machine may skip a phase of less than a second.
    seconds = 10 if "phase" in threshold else 2
    options = ["--users", "2", "--run-time", f"{seconds}s", "--results", str(tmp_path), "--fail-on", threshold]
    done = scenario("spike", *at(server, data), *options)
    assert done.returncode == status, done.stderr
    assert says in done.stdout
    (judged,) = json.loads((tmp_path / "result.json").read_text())["thresholds"]
    assert judged["exceeded"] == (status == 3)


@pytest.mark.parametrize("workers", [1, 2])
def test_failures_fail_a_run_that_names_no_threshold_and_are_all_told(
    server: FakeSysE, data: Path, tmp_path: Path, workers: int
) -> None:
    server.misbehave = "status"
    options = ["--users", "2", "--run-time", "3s", "--workers", str(workers), "--results", str(tmp_path)]
    done = scenario("steady", *at(server, data), *options)
    assert done.returncode == 3
    assert "times GET /search: " in done.stdout
    assert "expected status 200, got 500" in done.stdout
    assert re.search(r"^exceeded  failures>0: \d+$", done.stdout, re.MULTILINE)
    found = json.loads((tmp_path / "result.json").read_text())
    assert sum(found["errors"].values()) == found["parts"][-1]["failures"] == len(server.searched)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_run_without_a_judgement(
    server: FakeSysE, data: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words = [sys.executable, "-m", "loadgen", "scenario", "steady", *at(server, data), "--results", str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: len(server.searched) > 0, "a search")
        process.send_signal(number)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "cut off" in output
    assert "Traceback" not in errors
    found: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
    assert found["complete"] is False


@contextmanager
def two_workers(server: FakeSysE, data: Path, results: Path, seconds: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "loadgen", "scenario", "steady", *at(server, data), "--results", str(results)]
    words += ["--workers", "2", "--users", "4", "--run-time", f"{seconds}s", "--output", "json"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: len(server.searched) > 0, "a search")
        yield process


def test_a_worker_that_is_killed_fails_the_run_which_says_so(server: FakeSysE, data: Path, tmp_path: Path) -> None:
    with two_workers(server, data, tmp_path, 8) as process:
        os.kill(next(iter(descendants(process.pid))), signal.SIGKILL)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 1, output
    says = "1 of 2 processes ended early: thresholds are not judged."
    assert f"locust: {says}" in errors.splitlines()
    assert says in (tmp_path / "table.txt").read_text()
    assert json.loads(output)["complete"] is False


@pytest.mark.parametrize("seconds", [2, 9])  # it is back after the load's end, or before
def test_a_worker_that_is_late_is_waited_for(server: FakeSysE, data: Path, tmp_path: Path, seconds: int) -> None:
    with two_workers(server, data, tmp_path, seconds) as process:
        worker = next(iter(descendants(process.pid)))
        os.kill(worker, signal.SIGSTOP)
        time.sleep(7)  # Locust itself believes after five that the worker is gone
        os.kill(worker, signal.SIGCONT)
        output, errors = process.communicate(timeout=300)
    assert process.returncode in (0, 3), errors  # the searches that were stopped, too, may have failed
    whole = json.loads(output)["parts"][-1]
    assert whole["queries"] + whole["failures"] >= len(server.searched)
    assert json.loads(output)["complete"] is True


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "http://127.0.0.1:9", "--data", "DATA"], "nothing answers at http://127.0.0.1:9: "),
        (["--host", "http://127.0.0.1:9"], "say with --data DIR where the keys of its users are"),
        (["--host", "https://127.0.0.1:9", "--data", "DATA"], "--host: expected http://HOST:PORT, got "),
        (["--host", "http://127.0.0.1:x", "--data", "DATA"], "--host: "),
        (["--host", "HOST", "--data", "/nowhere"], "cannot read /nowhere/"),
        (["--host", "HOST", "--data", "DATA", "--fail-on", "p99>5"], "'p99>5': at character 6: p99 is a time"),
        (["--host", "HOST", "--data", "DATA", "--fail-on", "overhead>5%"], "compares with mode baseline"),
        (["--host", "HOST", "--data", "DATA", "--users", "0"], "--users: expected a number from 1, got 0"),
    ],
)
@pytest.mark.parametrize("workers", [[], ["--processes", "2"]])
def test_what_is_wrong_is_said_in_one_line(
    server: FakeSysE, data: Path, options: list[str], says: str, workers: list[str]
) -> None:
    known = {"HOST": f"http://127.0.0.1:{server.server_port}", "DATA": str(data)}
    done = locust("spike", *(known.get(word, word) for word in options), *workers, "--loglevel", "WARNING")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("locust: ")
    assert says in line


EARLY = """
import sys
from loadgen.scenarios import by_hand, steady
import gevent
from locust import argument_parser, events
from locust.env import Environment

options = argument_parser.get_parser().parse_args(["--users", "1", *sys.argv[1:]])
environment = Environment(
    user_classes=[by_hand.SearchUser], shape_class=steady.Steady(), events=events, parsed_options=options,
    host=options.host,
)
runner = environment.create_local_runner()
early = gevent.spawn(events.test_start.fire, environment=environment)
gevent.sleep()  # lets it run
print(early.dead, hasattr(by_hand.SearchUser, "behaviour"))
by_hand.prepare(environment, runner, None)
early.join()
print(by_hand.SearchUser.behaviour.pipeline)
"""


def test_a_run_begins_when_its_process_is_prepared_however_early_it_was_asked_for(server: FakeSysE, data: Path) -> None:
    words = [sys.executable, "-c", EARLY, *at(server, data)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout == "False False\nsyse\n"


def test_wrong_thresholds_are_found_before_locust_starts() -> None:
    done = scenario("spike", "--fail-on", "overheads>5%")
    assert done.returncode == 1
    assert done.stderr.startswith("loadgen scenario: 'overheads>5%': at character 1: expected one of overhead, ")


@pytest.mark.parametrize("option", ["--users", "--workers"])
@pytest.mark.parametrize("number", ["0", "-3", "x"])
def test_nobody_and_nothing_make_no_load(option: str, number: str) -> None:
    done = scenario("steady", f"{option}={number}")
    assert done.returncode == 2
    assert f"error: argument {option}: " in done.stderr.splitlines()[-1]


def test_without_a_name_all_are_listed() -> None:
    text, found = scenario().stdout, json.loads(scenario("--output", "json").stdout)
    assert [entry["name"] for entry in found] == list(SCENARIOS)
    assert all(f"{entry['name']} " in text and entry["question"] in text for entry in found)


def test_its_file_runs_from_any_directory_and_so_does_a_copy(server: FakeSysE, data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "own.py"
    original = ROOT / "loadgen" / "scenarios" / "steady.py"
    copy.write_text(original.read_text())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = ["--headless", *at(server, data), "--users", "1", "--run-time", "1s"]
    for file in (original, copy):
        words = [sys.executable, "-m", "locust", "-f", str(file), *options]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_it_runs_from_any_directory(server: FakeSysE, data: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "loadgen", "scenario", "steady", *at(server, data), "--users", "1"]
    words += ["--run-time", "1s", "--results", "here"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here" / "result.json").exists()
