# SPDX-License-Identifier: BSD-2-Clause
"""The process of a measurement, with a stand-in for loadgen; processes and signals are real."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from shai_operator.control.measuring import LocalLoadGenerator, MeasuringError, Results, Slices, Subject
from testing.waiting import until_async

PROGRAM = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
output = Path(sys.argv[6]); output.mkdir()
member = json.loads(Path(sys.argv[2]).read_text())
def tell(state, message, done=0):
    told = {"state": state, "done": done, "total": 4, "message": message, "elapsed": 1}
    (output / "new").write_text(json.dumps(told))
    (output / "new").replace(output / "progress.json")
def end(*_):
    tell("Cancelled", "put back")
    Path(member["mark"]).write_text("put back")
    sys.exit(130)
signal.signal(signal.SIGTERM, end)
"""
OPERATOR = Path(__file__).resolve().parents[2]
SUBJECT = {"name": "main-0"}


def generator(tmp_path: Path, body: str) -> LocalLoadGenerator:
    return LocalLoadGenerator(tmp_path, (sys.executable, "-c", PROGRAM + body))


def subject(tmp_path: Path) -> Subject:
    return Subject({**SUBJECT, "mark": str(tmp_path / "mark")}, ['{"kind": "Policy"}', '{"kind": "Pipeline"}'])


def ignore(_: Slices) -> None: ...


def left(place: Path, pattern: str) -> list[Path]:
    return list(place.glob(pattern))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_what_is_counted_of_the_load_says_whose_it_is(tmp_path: Path) -> None:
    """Two namespaces may have pipelines of the same name."""
    body = """
(output / "results.json").write_text(json.dumps({"words": sys.argv[7:]}))
(output / "table.txt").write_text("a table")
"""
    near = LocalLoadGenerator(
        tmp_path, (sys.executable, "-c", PROGRAM + body), scrape=tmp_path / "scrape", cluster="rack"
    )
    whose = dataclasses.replace(subject(tmp_path), namespace="team")
    found = await near.run(whose, {}, ignore, asyncio.Event())
    words = ["--scrape", str(tmp_path / "scrape"), "--cluster", "rack", "--namespace", "team"]
    assert found.figures == {"words": words}


async def test_results_come_back_and_progress_on_the_way(tmp_path: Path) -> None:
    body = """
manifests = sorted(Path(member["manifests"]).iterdir())
tell("Running", "slice 1", 1)
while not Path(member["mark"]).exists(): time.sleep(0.02)
plan = json.loads(Path(sys.argv[4]).read_text())
found = {"member": member["name"], "plan": plan, "kinds": [json.loads(path.read_text())["kind"] for path in manifests]}
(output / "results.json").write_text(json.dumps(found))
(output / "table.txt").write_text("a table")
"""
    seen: list[Slices] = []

    def note(slices: Slices) -> None:
        seen.append(slices)
        (tmp_path / "mark").touch()

    found = await generator(tmp_path, body).run(subject(tmp_path), {"rounds": 2}, note, asyncio.Event())
    figures = {"member": "main-0", "plan": {"rounds": 2}, "kinds": ["Policy", "Pipeline"]}
    assert found == Results(figures, "a table")
    assert seen[0] == Slices(1, 4, "slice 1")
    assert left(tmp_path, "*") == [tmp_path / "mark"], "nothing is left"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("tell('Failed', 'no keys.jsonl'); sys.exit(\"Alice's diary\\n\")", "no keys.jsonl"),
        ('sys.exit("Alice\'s diary\\n")', "the load generator ended with status 1"),
        (
            "tell('Running', \"Alice's diary\"); print(\"Alice's diary\", flush=True); os.kill(os.getpid(), 9)",
            "the load generator ended with status -9",
        ),
    ],
)
async def test_a_failure_has_its_cause_and_the_log_is_the_operators_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: str, says: str
) -> None:
    with pytest.raises(MeasuringError) as raised:
        await generator(tmp_path, body).run(subject(tmp_path), {}, ignore, asyncio.Event())
    found = re.fullmatch(rf"{says}; the operator's log has more \(look there for (benchmark-\w+)\)", str(raised.value))
    assert found, raised.value
    (record,) = [record for record in caplog.records if record.name == LocalLoadGenerator.__module__]
    assert record.getMessage().startswith(found.group(1))
    assert "Alice's diary" in record.getMessage()
    assert "\n" not in record.getMessage()


WAITING = """
child = subprocess.Popen(["sleep", "600"], start_new_session=False)
tell("Running", str(child.pid))
while True: time.sleep(1)
"""


@pytest.mark.parametrize("how", ["event", "task"])
async def test_cancelled_it_is_given_the_time_to_put_things_back(tmp_path: Path, how: str) -> None:
    seen: list[Slices] = []
    cancel = asyncio.Event()
    task = asyncio.create_task(generator(tmp_path, WAITING).run(subject(tmp_path), {}, seen.append, cancel))
    await until_async(lambda: bool(seen))
    if how == "event":
        cancel.set()
        with pytest.raises(MeasuringError, match="put back"):
            await task
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (tmp_path / "mark").read_text() == "put back"
    await until_async(lambda: not alive(int(seen[0].message)))


SLOW_FILE = """
from testing.waiting import until
os.mkfifo(output / "progress.json")
with (output / "progress.json").open("w") as slow:  # goes on when somebody reads it
    Path(member["mark"]).with_name("reads").touch()
    until(Path(member["mark"]).exists, "the event loop goes on while the file is read")
    tell("Running", "slice 1", 1)
    slow.write((output / "progress.json").read_text())
while True: time.sleep(1)
"""


async def test_the_event_loop_goes_on_while_progress_is_read(tmp_path: Path) -> None:
    seen: list[Slices] = []
    cancel = asyncio.Event()
    task = asyncio.create_task(generator(tmp_path, SLOW_FILE).run(subject(tmp_path), {}, seen.append, cancel))
    await until_async((tmp_path / "reads").exists)
    (tmp_path / "mark").touch()
    await until_async(lambda: bool(seen) or task.done())
    cancel.set()
    with pytest.raises(MeasuringError, match="put back"):
        await task
    assert seen[0] == Slices(1, 4, "slice 1")


async def test_an_operator_that_is_killed_takes_its_measurement_with_it(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
from pathlib import Path
from shai_operator.control.measuring import LocalLoadGenerator, Subject
generator = LocalLoadGenerator(Path({str(tmp_path)!r}), (sys.executable, "-c", {PROGRAM + WAITING!r}))
subject = Subject({{"mark": {str(tmp_path / "mark")!r}}}, [])
asyncio.run(generator.run(subject, {{}}, lambda slices: print(slices.message, flush=True), asyncio.Event()))
"""
    environment = {**os.environ, "PYTHONPATH": str(OPERATOR)}
    operator = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert operator.stdout is not None
    child = int(await operator.stdout.readline())
    operator.kill()
    await operator.wait()
    await until_async((tmp_path / "mark").exists)
    (progress,) = left(tmp_path, "*/output/progress.json")
    assert json.loads(progress.read_text())["state"] == "Cancelled"
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
