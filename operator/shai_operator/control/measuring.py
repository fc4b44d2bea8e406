# SPDX-License-Identifier: BSD-2-Clause
"""Load generators, which measure members: their interface, and the one for members on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from shai_operator.reconcile.objects import Object

_LOOK_SECONDS = 0.5
_END_SECONDS = 90.0
"""Time that a measurement has for restoring the member: each of its processes has 15 seconds to end."""
_TAIL_CHARACTERS = 4096
_COMMAND = (sys.executable, "-m", "loadgen", "benchmark")
_REPOSITORY = Path(__file__).resolve().parents[3]
_LOGGER = logging.getLogger(__name__)


class MeasuringError(Exception):
    """A measurement produced no results; the text has the cause, and nothing from users' data or from logs."""


@dataclass(frozen=True)
class Subject:
    """The member to measure: its description for ``loadgen.stacks.member``, and the manifests of its bundle."""

    description: Mapping[str, Any]
    manifests: Sequence[str]
    pool: Object = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    """The member in the pool's status."""
    namespace: str = ""
    """Of the pipeline: what is counted of the load says so."""


@dataclass(frozen=True)
class Slices:
    """The progress of a measurement."""

    done: int
    total: int
    message: str


@dataclass(frozen=True)
class Results:
    """The results of a measurement: results.json and table.txt."""

    figures: Mapping[str, Any]
    table: str


@dataclass(frozen=True)
class Joining:
    """Where workers of a measurement connect that are not started by it: a listening socket, and its certificates."""

    listener: int
    tls: Path


class WorkerJobs(Protocol):
    """Starts workers elsewhere; implemented by `control.load_jobs`."""

    def workers(self, count: int, member: str, place: Path) -> AbstractAsyncContextManager[Joining]:
        """Run workers for a member's address; ``place`` is the measurement's private directory."""


class LoadGenerator(Protocol):
    """Measures members."""

    async def run(
        self,
        subject: Subject,
        plan: Mapping[str, Any],
        progress: Callable[[Slices], None],
        cancel: asyncio.Event,
    ) -> Results:
        """Measure, and return the results; MeasuringError when there are none.

        Setting ``cancel``, or cancelling the task, ends the measurement. The member is restored before this returns.
        """


class LocalLoadGenerator:
    """Measures members on this machine, with one process for each measurement."""

    def __init__(
        self,
        directory: Path,
        command: Sequence[str] = _COMMAND,
        *,
        scrape: Path | None = None,
        cluster: str = "",
        jobs: WorkerJobs | None = None,
    ) -> None:
        self._directory = directory
        self._jobs = jobs
        self._command = command
        self._scrape = ("--scrape", str(scrape), "--cluster", cluster) if scrape else ()

    async def run(
        self,
        subject: Subject,
        plan: Mapping[str, Any],
        progress: Callable[[Slices], None],
        cancel: asyncio.Event,
    ) -> Results:
        """Measure; see `LoadGenerator.run`."""
        async with contextlib.AsyncExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-", dir=self._directory)))
            await asyncio.to_thread(_write, place, subject, plan)
            joining = await stack.enter_async_context(self._joining(subject, plan, place))
            process = await self._start(place, subject, joining)
            ended = asyncio.create_task(process.wait())
            cancelled = asyncio.create_task(cancel.wait())
            try:
                while not ended.done() and not cancelled.done():
                    await asyncio.wait([ended, cancelled], timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    found = await asyncio.to_thread(_read, place / "output" / "progress.json")
                    if found:
                        progress(Slices(found["done"], found["total"], found["message"]))
            finally:
                cancelled.cancel()
                await _end(process, ended)
            return await asyncio.to_thread(_results, place, ended.result())

    @contextlib.asynccontextmanager
    async def _joining(self, subject: Subject, plan: Mapping[str, Any], place: Path) -> AsyncIterator[Joining | None]:
        """Run the workers of a plan that wants them elsewhere."""
        wanted = plan.get("workers") or {}
        if wanted.get("as") != "Job":
            yield None
            return
        if self._jobs is None:
            raise MeasuringError("this operator starts no Jobs; choose workers as: Process")
        address = subject.description["variables"]["MEMBER_ADDRESS"]
        async with self._jobs.workers(int(wanted.get("count", 1)), address, place) as joining:
            yield joining

    async def _start(self, place: Path, subject: Subject, joining: Joining | None) -> asyncio.subprocess.Process:
        files = {"--member": "member.json", "--plan": "plan.json", "--output": "output"}
        words = [str(word) for option, name in files.items() for word in (option, place / name)]
        if self._scrape:
            words += [*self._scrape, "--namespace", subject.namespace]
        if joining is not None:
            words += ["--workers-socket", str(joining.listener), "--workers-tls", str(joining.tls)]
        with (place / "log").open("wb") as log:
            return await asyncio.create_subprocess_exec(
                # If the operator is killed, the kernel sends the measurement this signal, so that it restores the
                # member.
                "setpriv", "--pdeathsig", "TERM", *self._command, *words,
                cwd=_REPOSITORY, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                pass_fds=() if joining is None else (joining.listener,),
            )  # fmt: skip


async def _end(process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
    """End a measurement in good order; kill what remains of it."""
    if not ended.done():
        process.terminate()  # only this process, which ends the processes that it started
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.shield(ended)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await ended


def _write(place: Path, subject: Subject, plan: Mapping[str, Any]) -> None:
    manifests = place / "manifests"
    manifests.mkdir()
    for number, text in enumerate(subject.manifests):
        (manifests / f"{number:05}.json").write_text(text)
    (place / "member.json").write_text(json.dumps({**subject.description, "manifests": str(manifests)}))
    (place / "plan.json").write_text(json.dumps(plan))


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return found


def _results(place: Path, status: int) -> Results:
    output = place / "output"
    progress = _read(output / "progress.json")
    if status == 0:
        return Results(_read(output / "results.json"), (output / "table.txt").read_text())
    if progress.get("state") == "Cancelled":
        raise MeasuringError(progress["message"])
    ended = f"the load generator ended with status {status}"
    said = (place / "log").read_text(errors="replace").strip()[-_TAIL_CHARACTERS:]
    _LOGGER.error("%s: %s, and said at the end: %r", place.name, ended, said)
    cause = progress["message"] if progress.get("state") == "Failed" else ended
    raise MeasuringError(f"{cause}; the operator's log has more (look there for {place.name})")
