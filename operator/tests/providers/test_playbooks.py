# SPDX-License-Identifier: BSD-2-Clause
"""Runs and their ends, with real ansible-playbook processes on tiny playbooks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers import process
from shai_operator.providers.interface import Host, Progress, Reason
from shai_operator.providers.playbooks import Job, Playbooks, Report
from testing.waiting import until_async
from tests.providers.support import arguments, processes_with, quiet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLAYBOOKS = {
    "slow.yml": "tail --follow {{ file }}",
    "environment.yml": "env",
    "fails.yml": "sh -c 'echo the disk is full >&2; exit 3'",
}
"""Each with the command of its only task; the slow one runs until it is killed."""
NOBODY = "- {name: For nobody, hosts: nobody, gather_facts: false, tasks: [{name: Nothing, ping: }]}\n"


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "collection" / "playbooks"
    directory.mkdir(parents=True)
    for name, command in PLAYBOOKS.items():
        task = {"name": "Work", "ansible.builtin.command": {"cmd": command}}
        register = {"name": "Show", "ansible.builtin.copy": {"content": "{{ it.stdout }}", "dest": "{{ file }}"}}
        tasks = [task | {"register": "it"}, *([register] if name == "environment.yml" else [])]
        play = {"name": "Play", "hosts": "machine", "gather_facts": False, "tasks": tasks}
        (directory / name).write_text(json.dumps([play]))
    (directory / "nobody.yml").write_text(NOBODY)
    monkeypatch.setattr(process, "COLLECTION", directory.parent)
    return directory.parent


@pytest.fixture
async def playbooks(tmp_path: Path, collection: Path) -> AsyncIterator[Playbooks]:  # noqa: ARG001 - has to be there
    runs = Playbooks(workers=2, directory=tmp_path / "runs")
    yield runs
    await runs.close()


def job(playbook: str, file: Path, host: str = "127.0.0.1") -> Job:
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "file": str(file)}
    inventory = json.dumps({"all": {"vars": variables, "hosts": {"machine": {}}}})
    return Job(playbook, Host(f"host {host}", host), lambda _: inventory, files={"secret": "canary"})


def works(file: Path) -> bool:
    """Whether the slow task of a job runs."""
    return any(arguments(pid).startswith("tail ") for pid in processes_with(str(file)))


def run_directories(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "runs").glob("*/run-*"))


async def ended(tmp_path: Path, file: Path) -> None:
    """Wait until all processes of a run have ended; after a signal this takes a moment."""
    await until_async(
        lambda: not processes_with(str(file)), f"the processes {processes_with(str(file))} of the run end"
    )
    assert run_directories(tmp_path) == []


async def test_cancelled(playbooks: Playbooks, tmp_path: Path) -> None:
    file, cancel, seen = tmp_path / "file", asyncio.Event(), list[Progress]()
    file.touch()
    run = asyncio.create_task(playbooks.run(job("slow.yml", file), seen.append, cancel))
    await until_async(lambda: seen and works(file), "the task is at work, and has been told")
    assert seen == [Progress("host 127.0.0.1", "Play", "Work", 1, 1)]
    cancel.set()
    report = await run
    assert report.failure is not None
    assert report.failure.reason is Reason.CANCELLED
    await ended(tmp_path, file)


async def test_the_caller_is_cancelled(playbooks: Playbooks, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    run = asyncio.create_task(playbooks.run(job("slow.yml", file), quiet, asyncio.Event()))
    await until_async(lambda: works(file), "the task is at work")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await ended(tmp_path, file)


@pytest.mark.parametrize(("all_runs", "this_run"), [(3, None), (600, 3)])
async def test_timed_out(collection: Path, tmp_path: Path, all_runs: float, this_run: float | None) -> None:
    assert collection
    runs = Playbooks(time_limit_seconds=all_runs, directory=tmp_path / "runs")
    file = tmp_path / "file"
    file.touch()
    limited = replace(job("slow.yml", file), time_limit_seconds=this_run)
    report = await runs.run(limited, quiet, asyncio.Event())
    assert report.failure is not None
    assert report.failure.reason is Reason.TIMED_OUT
    assert "slow.yml took longer than 3 s" in report.failure.message
    await ended(tmp_path, file)
    await runs.close()


async def test_hosts_that_hang_when_they_are_looked_at_keep_no_thread_from_others(
    playbooks: Playbooks, tmp_path: Path
) -> None:
    files = [tmp_path / "first", tmp_path / "second"]
    looks = []
    for number, file in enumerate(files):
        file.touch()
        slow = replace(job("slow.yml", file, f"127.0.0.{2 + number}"), looks=True)
        looks.append(asyncio.create_task(playbooks.run(slow, quiet, asyncio.Event())))
    await until_async(lambda: any(map(works, files)), "a host is looked at")
    work = job("environment.yml", tmp_path / "other", "127.0.0.9")
    other = asyncio.create_task(playbooks.run(work, quiet, asyncio.Event()))
    await until_async(other.done, "another host is worked on")
    assert other.result().failure is None
    assert [run.done() for run in looks] == [False, False]
    for run in looks:
        run.cancel()
    await asyncio.gather(*looks, return_exceptions=True)


OPERATOR = """
import asyncio, sys
from pathlib import Path
from shai_operator.providers import process
from shai_operator.providers.playbooks import Playbooks
from tests.providers.test_playbooks import job
async def main():
    process.COLLECTION = Path(sys.argv[1])
    runs = Playbooks(directory=Path(sys.argv[2]))
    await runs.run(job("slow.yml", Path(sys.argv[3])), print, asyncio.Event())
asyncio.run(main())
"""


async def test_the_operator_is_killed(playbooks: Playbooks, collection: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    operator = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OPERATOR, collection, tmp_path / "runs", file,
        env={**os.environ, "PYTHONPATH": str(Path(process.__file__).parents[2])},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    await until_async(lambda: works(file), "the task is at work")
    operator.send_signal(signal.SIGKILL)
    await operator.wait()
    await until_async(lambda: not processes_with(str(file)), "the run's processes end with their operator")
    assert run_directories(tmp_path) != []
    await playbooks.run(job("nobody.yml", file), quiet, asyncio.Event())
    assert run_directories(tmp_path) == []


async def test_nobody_is_no_success(playbooks: Playbooks, tmp_path: Path) -> None:
    report = await playbooks.run(job("nobody.yml", tmp_path / "file"), quiet, asyncio.Event())
    assert report.failure is not None
    assert report.failure.reason is Reason.PLAYBOOK_FAILED
    assert "no hosts matched" in report.failure.message.lower()


async def test_a_task_fails(playbooks: Playbooks, tmp_path: Path) -> None:
    report = await playbooks.run(job("fails.yml", tmp_path / "file"), quiet, asyncio.Event())
    assert report.failure is not None
    assert report.failure.reason is Reason.PLAYBOOK_FAILED
    assert report.failure.message == (
        "host host 127.0.0.1: task 'Work': non-zero return code: the disk is full; correct this on the host; the next "
        "run, which the operator starts itself, goes on from there"
    )


async def test_a_run_sees_nothing_of_the_operators_environment(
    playbooks: Playbooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAI_CANARY", "secret-of-the-operator")
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "of-the-operator")
    file = tmp_path / "environment"
    report = await playbooks.run(job("environment.yml", file), quiet, asyncio.Event())
    assert report.failure is None
    assert "ANSIBLE_HOME=" in file.read_text()
    assert "of-the-operator" not in file.read_text()


async def test_more_slow_playbooks_than_workers(playbooks: Playbooks, tmp_path: Path) -> None:
    """Two run, on different hosts; a waiting one holds no thread, can be cancelled, and runs when its turn comes."""
    files = {name: tmp_path / f"file-{name}" for name in ("one", "same-host", "two", "three", "four")}
    hosts = {
        "one": "127.0.0.1",
        "same-host": "127.0.0.1",
        "two": "127.0.0.2",
        "three": "127.0.0.3",
        "four": "127.0.0.4",
    }
    cancels = {name: asyncio.Event() for name in files}
    runs: dict[str, asyncio.Task[Report]] = {}
    for name, file in files.items():
        file.touch()
        runs[name] = asyncio.create_task(playbooks.run(job("slow.yml", file, hosts[name]), quiet, cancels[name]))
    await until_async(lambda: works(files["one"]) and works(files["two"]), "two playbooks are at work")
    other = asyncio.create_task(asyncio.to_thread(lambda: "others go on"))
    await until_async(other.done, "a thread is free for others")
    assert len(run_directories(tmp_path)) == 2

    cancels["three"].set()
    await until_async(runs["three"].done, "the waiting one ends")
    waited = runs["three"].result()
    assert waited.failure is not None
    assert waited.failure.reason is Reason.CANCELLED

    cancels["two"].set()
    await until_async(lambda: works(files["four"]), "a waiting playbook takes the place of one that ended")
    assert not processes_with(str(files["same-host"])), "two playbooks run on one host"

    await playbooks.close()
    assert {name: run.result().failure is not None for name, run in runs.items()} == dict.fromkeys(files, True)
    for file in files.values():
        await ended(tmp_path, file)
