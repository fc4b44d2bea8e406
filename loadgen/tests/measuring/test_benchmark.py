# SPDX-License-Identifier: BSD-2-Clause
"""A measurement of a running member, with stand-ins for its monitor and Sys-E.

Redis, the load generator and all signals are real.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.results import samples
from loadgen.stacks import manifests
from loadgen.stacks.member import MemberError, peer, read
from loadgen.tests.harness import ROOT
from loadgen.tests.serving_member import PLAN
from testing.waiting import until

if TYPE_CHECKING:
    from loadgen.tests.serving_member import ServingMember


def ended(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=300)[0]


def test_a_measurement_writes_what_it_promises_and_leaves_the_member_as_it_was(member: ServingMember) -> None:
    before = {pid: os.sched_getaffinity(pid) for pid in member.own}
    process = member.measure()
    assert ended(process) == ""
    assert process.returncode == 0
    found = json.loads((member.output / "results.json").read_text())
    assert [(row["sessionLength"], row["mode"]) for row in found["rows"]] == [
        (length, mode) for length in (1, 0) for mode in [*PLAN["modes"], "control"]
    ]
    assert set(found["summary"]) == {"dynamic", "shai", "control"}
    assert len(samples.read(member.output / "samples.csv")) == 8
    assert "session mode" in (member.output / "table.txt").read_text()
    progress = member.progress()
    assert progress.pop("elapsed") > 5
    assert progress == {"state": "Complete", "done": 8, "total": 8, "message": "done"}
    assert member.mode() == "shai"
    assert {pid: os.sched_getaffinity(pid) for pid in member.own} == before
    assert not (member.root / ".benchmark").exists()


def test_a_threshold_fails_a_run_and_its_results_are_kept(member: ServingMember) -> None:
    workers = {"count": 2, "as": "Process"}
    thresholds = ["failures>0", "queries_per_second{mode=baseline}>0"]
    member.write(**{**PLAN, "scenario": "sessions_8", "workers": workers, "thresholds": thresholds[:1]})
    process = member.measure("--fail-on", thresholds[1])
    assert 'queries_per_second{mode="baseline"}>0' in ended(process)
    assert process.returncode == 3
    assert member.progress()["state"] == "Complete"
    found = json.loads((member.output / "results.json").read_text())
    assert [(one["threshold"], one["exceeded"]) for one in found["thresholds"]] == [
        (thresholds[0], False),
        (thresholds[1], True),
    ]
    assert {row["sessionLength"] for row in found["rows"]} == {8}
    assert all(sample["queries"] == 8 * sample["sessions"] for sample in found["samples"])
    counts = {(one["mode"], one["sessionLength"]): sum(one["counts"]) for one in found["latency"]}
    assert counts == {(sample["mode"], 8): sample["queries"] for sample in found["samples"]}, "of both processes"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_it_puts_everything_back(member: ServingMember, number: signal.Signals) -> None:
    before = {pid: os.sched_getaffinity(pid) for pid in member.own}
    process = member.measure()
    member.wait_for(process, lambda progress: progress["done"] >= 1)
    process.send_signal(number)
    ended(process)
    assert process.returncode == 130
    assert member.progress()["state"] == "Cancelled"
    assert member.mode() == "shai"
    assert {pid: os.sched_getaffinity(pid) for pid in member.own} == before
    assert not (member.root / ".benchmark").exists()


@pytest.mark.parametrize("point", ["starting twins", "warming up"])
def test_interrupted_early_it_leaves_nothing(member: ServingMember, point: str) -> None:
    process = member.measure()
    member.wait_for(process, lambda progress: point in progress["message"])
    process.terminate()
    ended(process)
    assert process.returncode == 130
    assert member.mode() == "shai"


def test_after_a_kill_the_next_measurement_puts_the_mode_back(member: ServingMember) -> None:
    member.write(**{**PLAN, "modes": ["baseline", "dynamic"]})
    process = member.measure()
    member.wait_for(process, lambda _: member.mode() == "dynamic")
    process.kill()
    ended(process)
    until(lambda: not member.left_over(), "its processes have ended: the kernel tells them that their parent has")
    assert member.mode() == "dynamic"
    process = member.measure()
    printed = ended(process)
    assert process.returncode == 0, printed
    assert member.mode() == "shai"


def test_a_second_measurement_of_a_member_is_refused(member: ServingMember) -> None:
    first = member.measure()
    member.wait_for(first, lambda progress: "twin" in progress["message"])
    member.output = member.root / "second"
    process = subprocess.run(
        [sys.executable, "-m", "loadgen", "benchmark", "--member", str(member.root / "member.json"), "--plan",
         str(member.root / "plan.json"), "--output", str(member.output)],
        cwd=ROOT, env=member.environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 1
    assert "member main-0 is being measured already" in process.stderr
    first.terminate()
    ended(first)


def test_a_mode_that_somebody_else_switches_is_noticed_and_put_back(member: ServingMember) -> None:
    member.write(**{**PLAN, "modes": ["baseline", "dynamic"], "sessionLengths": [1], "rounds": 20})
    process = member.measure()
    member.wait_for(process, lambda progress: progress["done"] >= 1 and member.mode() == "dynamic")
    member.monitor.call("pipeline", "mode", "syse", "audit")
    output = ended(process)
    assert process.returncode == 1
    assert "was switched from mode dynamic to audit while it was measured" in output
    assert member.progress()["state"] == "Failed"
    assert member.mode() == "shai"


@pytest.mark.parametrize(
    ("description", "plan", "says"),
    [
        ({"pipeline": "other"}, {}, "the monitor has no pipeline other; it has syse"),
        ({"image": "/nowhere"}, {}, "/nowhere/bin/shai is missing or not readable"),
        ({"monitor": {}}, {}, "'address' is missing"),
        ({"variables": {}}, {}, "its front end listens at '$(MEMBER_ADDRESS)"),
        ({"store": "/nowhere.sock"}, {}, "no server answers at /nowhere.sock"),
        ({}, {"modes": ["shai", "dynamic"]}, "modes: baseline and another are needed"),
        ({}, {"modes": ["baseline", "slow"]}, "modes: 'slow' is not a mode"),
        ({}, {"thresholds": ["overhead>"]}, "'overhead>': at character 10: expected a number"),
        ({}, {"scenario": "unfriending"}, "'unfriending' cannot be measured in several modes"),
        ({}, {"workers": {"count": 5, "as": "Process"}}, "workers: 5 are more than concurrentUsers, 4"),
        ({}, {"workers": {"count": 2, "as": "Job"}}, "as: Job needs an operator, which makes the Job; take Process"),
        ({}, {"rounds": 0}, "rounds: expected a whole number from 1, got 0"),
        ({}, {"sessionLengths": []}, "sessionLengths: expected a list"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_reason(
    member: ServingMember, description: dict[str, Any], plan: dict[str, Any], says: str
) -> None:
    member.describe(**description)
    member.write(**{**PLAN, **plan})
    process = member.measure()
    output = ended(process)
    assert process.returncode == 1
    assert says in output
    assert says in member.progress()["message"]
    assert member.progress()["state"] == "Failed"
    assert "Traceback" not in output


def test_what_tasks_put_into_the_place_of_its_data_neither_stops_nor_misleads_a_measurement(
    member: ServingMember,
) -> None:
    queries = member.root / "data" / "queries.txt"
    queries.unlink()
    os.mkfifo(queries)
    process = member.measure()
    assert f"cannot read {queries}: it is not a regular file; make the corpus again" in ended(process)
    assert process.returncode == 1
    says = "cannot read queries.txt of the member's data: it is not a regular file; make the corpus again"
    assert says in member.progress()["message"]


@pytest.mark.parametrize(("listen", "host"), [("$(MEMBER_ADDRESS)", "127.0.0.1"), ("$(OWN)", "192.0.2.1")])
def test_variables_of_the_pipeline_are_known_and_the_member_s_take_precedence(
    member: ServingMember, listen: str, host: str
) -> None:
    description = read(member.describe())
    documents = manifests.read(description.manifests)
    spec = manifests.find(documents, "syse")["spec"]
    given = {"PORT": "4711", "OWN": "192.0.2.1", "MEMBER_ADDRESS": "192.0.2.2"}
    spec["variables"] = [{"name": name, "value": value} for name, value in given.items()]
    (conduit,) = spec["conduits"]
    conduit.update(listen=f"{listen}:$(PORT)", service="search.example:$(PORT)")
    stack = description.attach(documents)
    assert (stack.address, stack.service) == ((host, 4711), "search.example:4711")


def test_a_pipeline_that_does_not_serve_is_refused(member: ServingMember) -> None:
    member.monitor.call("task", "stop", "syse", "search")
    process = member.measure()
    assert "task search of pipeline syse does not run" in ended(process)
    assert process.returncode == 1


def test_the_process_behind_a_socket_is_known(member: ServingMember) -> None:
    assert member.monitor.socket is not None
    assert peer(member.monitor.socket) in member.own


def test_a_monitor_at_an_address_needs_its_processes_named(member: ServingMember) -> None:
    server = {"address": "127.0.0.1:1", "certificate": "c", "key": "k", "authority": "a"}
    description = read(member.describe(monitor=server))
    with pytest.raises(MemberError, match="give its socket, or the process ids"):
        description.services()
    assert read(member.describe(monitor=server, processes=[1])).services() == [1]
