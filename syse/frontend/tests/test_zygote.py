# SPDX-License-Identifier: BSD-2-Clause
"""The zygote keeps exactly the requested number of workers, whatever happens to them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .harness import AUDIT, BUILD, PATIENCE_SECONDS, Client, FrontEnd, eventually

if TYPE_CHECKING:
    from collections.abc import Callable


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_killed_workers_are_replaced(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=8)
    assert eventually(lambda: len(front_end.children()) == 8)
    before = front_end.children()
    for pid in before[:3]:
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: len(front_end.children()) == 8 and len(set(front_end.children()) - set(before)) == 3)
    assert "killed by signal 9" in front_end.errors()


def test_a_thousand_sessions_leave_nothing_behind(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=1)
    assert eventually(lambda: len(front_end.children()) == 1)
    before = descriptors(front_end.zygote())
    for _ in range(1000):
        with front_end.client() as client:
            assert client.ask("GET", "/healthz")[0] == 200
    assert eventually(lambda: front_end.resets == 1000)
    # After a worker's last record the supervisor still has to reap it and to permit the next. An open connection
    # keeps that one, so that nothing changes while the processes are counted.
    with front_end.client() as client:
        assert client.ask("GET", "/healthz")[0] == 200
        assert len(front_end.children()) == 1
        assert descriptors(front_end.zygote()) == before
        assert threads(front_end.zygote()) == 1
        assert front_end.errors() == ""


def test_baseline_workers_serve_a_thousand_sessions_without_a_fork(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=2)
    number = front_end.document("blue", "blue")
    front_end.engine = lambda _query: [number]
    assert eventually(lambda: len(front_end.children()) == 2)
    before = descriptors_while_serving(front_end)
    for i in range(1000):
        with front_end.client() as client:
            search(client, ("alice", "bob", "carol")[i % 3])
    assert descriptors_while_serving(front_end) == before


def test_baseline_workers_serve_single_sessions_if_told_to(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=2, options=("--single-session",))
    number = front_end.document("blue", "blue")
    front_end.engine = lambda _query: [number]
    assert eventually(lambda: len(front_end.children()) == 2)
    before = set(front_end.children())
    with ExitStack() as sessions:
        for _ in before:
            search(sessions.enter_context(front_end.client()), "alice")
        assert set(front_end.children()) == before
    assert eventually(lambda: len(front_end.children()) == 2 and not before & set(front_end.children()))
    assert front_end.errors() == ""


def descriptors_while_serving(front_end: FrontEnd) -> dict[int, int]:
    """Count each worker's descriptors while each has a session, and so opens and closes none."""
    with ExitStack() as sessions:
        for _ in front_end.children():
            search(sessions.enter_context(front_end.client()), "alice")
        return {pid: descriptors(pid) for pid in front_end.children()}


def search(client: Client, user: str) -> None:
    assert client.login(user)[0] == 200
    answer = client.json("GET", "/search?q=blue")[1]
    assert answer["user"] == user
    assert len(answer["results"]) == 1


def test_dying_workers_are_replaced_ever_more_slowly(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=1)
    front_end.listener.shutdown(2)  # accept4 fails from now on
    assert eventually(lambda: "6 times in a row" in front_end.errors())
    errors = front_end.errors()
    assert "accept a session:" in errors
    # The last six: a worker that takes a second for it has not died at once, and the count begins anew.
    sixth = errors.index("6 times in a row")
    waits = [int(wait) for wait in re.findall(r"starts in (\d+) ms", errors[: errors.index("\n", sixth)])]
    assert waits[-6:] == [20, 40, 80, 160, 320, 640]
    assert front_end.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything(start: Callable[..., FrontEnd], number: int) -> None:
    front_end = start(workers=8)
    assert eventually(lambda: len(front_end.children()) == 8)
    workers = front_end.children()
    with front_end.client() as client:
        client.login("alice")
        os.kill(front_end.pid, number)
        front_end.status = os.waitstatus_to_exitcode(os.waitpid(front_end.pid, 0)[1])
    assert front_end.status == 0
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_workers_do_not_outlive_the_zygote(start: Callable[..., FrontEnd]) -> None:
    front_end = start(workers=4)
    assert eventually(lambda: len(front_end.children()) == 4)
    workers = front_end.children()
    os.kill(front_end.pid, signal.SIGKILL)
    front_end.status = os.waitstatus_to_exitcode(os.waitpid(front_end.pid, 0)[1])
    assert eventually(lambda: not [pid for pid in workers if alive(pid)])


def test_a_zygote_with_a_supervisor_has_no_children_and_forks_when_it_is_asked(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=8)
    assert eventually(lambda: len(front_end.children()) == 8)
    zygote, before = front_end.zygote(), front_end.children()
    for pid in before[:3]:
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: len(front_end.children()) == 8 and len(set(front_end.children()) - set(before)) == 3)
    assert front_end.zygote() == zygote
    assert Path(f"/proc/{zygote}/task/{zygote}/children").read_text(encoding="ascii") == ""


def test_a_zygote_with_a_supervisor_holds_nothing_that_its_workers_would_share(
    start: Callable[..., FrontEnd],
) -> None:
    front_end = start(mode=AUDIT, workers=1)
    assert eventually(lambda: len(front_end.children()) == 1)
    zygote = front_end.zygote()
    held = {int(path.name) for path in Path(f"/proc/{zygote}/fd").iterdir()}
    assert held <= {0, 1, 2, *front_end.given}
    assert threads(zygote) == 1


def test_a_zygote_with_a_supervisor_ends_with_a_signal(start: Callable[..., FrontEnd]) -> None:
    front_end = start(mode=AUDIT, workers=2)
    assert eventually(lambda: len(front_end.children()) == 2)
    workers = front_end.children()
    assert front_end.stop() == 0
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


PAGE = ["--page", str(BUILD / "page.html")]
ADVERTISEMENTS = ["--advertisements", str(BUILD / "advertisements.txt")]
TOPICS = ["--topics", str(BUILD / "topics.txt")]


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([], "--page is needed"),
        (PAGE, "--advertisements is needed to serve search"),
        ([*PAGE, *ADVERTISEMENTS, "--serve", "support"], "--advertisements is needed to serve search, and is"),
        ([*PAGE, *ADVERTISEMENTS, *TOPICS], "--topics is needed to serve interests, and is for it alone"),
        ([*PAGE, "--serve", "interests"], "--topics is needed to serve interests"),
        ([*PAGE, "--serve", "interests", "--topics", "/dev/null"], "read /dev/null, line 2: the file has no topic"),
        ([*PAGE, "--serve", "everything"], "--serve everything is not known"),
        ([*PAGE, *ADVERTISEMENTS, "--fault", "skip-entry"], "the service that --serve names has no fault skip-entry"),
        ([*PAGE, "--serve", "support", "--fault", "query-as-topic"], "has no fault query-as-topic"),
        ([*PAGE, "--serve", "interests", *TOPICS, "--fault", "date-ahead"], "has no fault date-ahead"),
        ([*PAGE, "--serve", "support", "--fault", "?"], "--fault ? is not known"),
        ([*PAGE, "--advertisements", "/nowhere"], "read /nowhere: No such file or directory"),
        ([*ADVERTISEMENTS, "--page", "/dev/null"], "no place for the pipeline's name"),
        ([*PAGE, "--advertisements", "/dev/null"], "it contains no advertisement"),
        ([*PAGE, "--advertisements", "/bin/true"], "it must be UTF-8 text"),
        ([*PAGE, *ADVERTISEMENTS, "--pipeline", ""], "--pipeline is not the name of a pipeline"),
        ([*PAGE, *ADVERTISEMENTS, "--pipeline", "a" * 64], "--pipeline is not the name of a pipeline"),
        ([*PAGE, *ADVERTISEMENTS, "--pipeline", '">'], "--pipeline is not the name of a pipeline"),
        ([*PAGE, *ADVERTISEMENTS], "mode baseline needs --keys and --keyvalue"),
        ([*PAGE, *ADVERTISEMENTS, "--keys", "/dev/null", "--keyvalue", "x"], "the file contains no keys"),
        ([*PAGE, *ADVERTISEMENTS, "--workers", "33"], "--workers 33: a number from 1 to 32 is expected"),
        ([*PAGE, *ADVERTISEMENTS, "--workers", "2x"], "--workers 2x: a number from 1 to 32 is expected"),
        ([*PAGE, *ADVERTISEMENTS, "surplus"], "unexpected argument surplus"),
        (["--no-such-option"], "no-such-option"),
    ],
)
def test_a_wrong_command_line_is_named(arguments: list[str], cause: str) -> None:
    command = [str(BUILD / "syse-frontend"), *arguments]
    result = subprocess.run(
        command,
        env={"SHAI_MODE": "baseline", "SHAI_PIPELINE": "syse"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert result.returncode == 1
    assert cause in result.stderr


def test_a_page_with_two_scripts_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text((BUILD / "page.html").read_text(encoding="utf-8").replace("<body>", "<script></script>"))
    command = [str(BUILD / "syse-frontend"), *ADVERTISEMENTS, "--page", str(page)]
    for pipeline, cause in (
        (["--pipeline", "syse"], "exactly one <style> and one <script>"),
        ([], "--pipeline is needed"),
    ):
        result = subprocess.run([*command, *pipeline], env={}, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert cause in result.stderr


def test_help_lists_every_option() -> None:
    result = subprocess.run([str(BUILD / "syse-frontend"), "--help"], capture_output=True, text=True, check=True)
    source = (Path(__file__).parents[1] / "src" / "options.c").read_text(encoding="utf-8")
    for option in ("workers", "results", "pipeline", "keys", "keyvalue", "idle-timeout", "answer-timeout"):
        assert f'"{option}"' in source
        assert f"--{option}" in result.stdout
