# SPDX-License-Identifier: BSD-2-Clause
"""Analyses of members in shards: pods of a Job compute them, and a process of this operator collects the results.

`shai analyze distribute` exports the work from the member, gives it to the pods, which connect to it with certificates
of this one run, and puts their joined result in force on the member. So nothing of the work is in an object of the API
server, and nobody who has rights in the pipeline's namespace reads it or returns a result. If anything fails, the last
good result of the member stays in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.control.worker_jobs import Workers
from shai_operator.monitors import answers, shapes
from shai_operator.monitors.errors import MonitorError
from shai_operator.providers import authority, directories
from shai_operator.reconcile.objects import reference
from shai_operator.reconcile.texts import cleaned

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Callable, Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.settings import Settings
    from shai_operator.control.worker_jobs import WorkerJobs
    from shai_operator.providers.authority import Identity
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.runs import Shards

NAMESPACE = "shai-analysis"
AT_ONCE = 2
"""Analyses that this operator collects at one time, one of a namespace at a time: it holds the work of each."""
ATTEMPTS = 3
"""How often a member is analysed again because its facts changed meanwhile."""

_AUTHORITY, _OWN = "authority.pem", "own.pem"
"""The files of one side's identity, as `shai analyze distribute` and `worker` read them."""
_MOUNTED = "/run/shai-analysis"
_LABEL = "shai.dev/analysis"
_LOOK_SECONDS = 1.0
_END_SECONDS = 15.0
_CONFLICT = 409
_CLIENT = "shai-operator"
_ROOMS = 3
"""A pod has the work, a copy of the catalog in it, and its result."""
_LOGGED = 4096

_LOGGER = logging.getLogger(__name__)


class ShardingError(Exception):
    """The shards have no result that could be put in force. Authors of pipelines may read the text."""


@dataclass(frozen=True)
class Subject:
    """What is analysed."""

    namespace: str
    pipeline: str
    endpoint: str
    """The address of the member's monitor."""
    about: str
    """Names the run and the member in this operator's log."""


@dataclass(frozen=True)
class _Told:
    """Who learns how it goes on."""

    progress: Callable[[Mapping[str, Any]], None]
    waiting: Callable[[str], None]
    """Gets for what it waits, in a sentence; empty: for nothing."""


class Sharding:
    """Analyses members in shards. ``root`` is the authority of the members' monitors."""

    def __init__(self, cluster: Cluster, jobs: WorkerJobs, settings: Settings, root: Identity) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._settings = settings
        self._root = root
        self._all = asyncio.Semaphore(AT_ONCE)
        self._own: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()
        """By namespace: however many runs one has, the others wait for one of them only."""

    async def analyze(
        self,
        subject: Subject,
        shards: Shards,
        progress: Callable[[Mapping[str, Any]], None],
        waiting: Callable[[str], None],
    ) -> dict[str, Any]:
        """Analyse a member in shards, and return what its monitor answers to an analysis.

        ShardingError or MonitorError when its last good result stays in force. Cancelling this ends pods and process.
        """
        if not self._settings.shard_image:
            raise ShardingError(
                "this operator was not told which image the pods of shards have (--shard-image); leave spec.shards "
                "out, or see deploy/shards"
            )
        own = self._own.setdefault(subject.namespace, asyncio.Semaphore(1))
        waiting("it waits for other analyses in shards to end")
        async with own, self._all:
            waiting("")
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return await self._attempt(subject, shards, _Told(progress, waiting))
                except MonitorError as error:
                    if error.status != _CONFLICT or attempt == ATTEMPTS:
                        raise
                    _LOGGER.info("%s: %s; beginning again", subject.about, error)
        raise AssertionError  # the last attempt returns or raises

    async def _attempt(self, subject: Subject, shards: Shards, told: _Told) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="shards-", dir=self._settings.runtime) as path:
            place = Path(path)
            files = await asyncio.to_thread(self._identities, place)
            async with self._process(subject, shards.count, place) as process:
                lines = _Lines(process, subject.about)
                address = await lines.listening()
                async with self._jobs.running(self._workers(shards, address, files)) as job:
                    return await self._result(lines, job, shards, told)

    async def _result(self, lines: _Lines, job: Object, shards: Shards, told: _Told) -> dict[str, Any]:
        """Return the process's result, or raise why the Job will not have one."""
        told.progress(_progress(0, shards.count))
        reading = asyncio.create_task(lines.result(lambda done: told.progress(_progress(done, shards.count))))
        following = asyncio.create_task(self._follow(job, shards.count, told.waiting))
        try:
            await asyncio.wait([reading, following], return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else following.result()
        finally:
            for task in (reading, following):
                task.cancel()
            await asyncio.gather(reading, following, return_exceptions=True)

    async def _follow(self, job: Object, count: int, waiting: Callable[[str], None]) -> Any:
        """Say how many pods run, until the Job fails; ShardingError then."""
        while True:
            try:
                found = await self._cluster.get(reference(job))
            except ClusterError as error:
                _LOGGER.warning("%s; looking at the Job again", error)  # its pods go on meanwhile
            else:
                if why := _failure(found, job):
                    _LOGGER.error("Job %s of shards: %s", job["metadata"]["name"], cleaned(why))
                    raise ShardingError("the Job of its shards failed; the operator's log has more")
                state = (found or {}).get("status") or {}
                begun = int(state.get("active") or 0) + int(state.get("succeeded") or 0)
                waiting("" if begun >= count else f"{begun} of {count} pods of its Job have begun")
            await asyncio.sleep(_LOOK_SECONDS)

    def _identities(self, place: Path) -> dict[str, str]:
        """Write the files of the process; return those of the pods."""
        root = authority.create()
        server = authority.issue_server(root, self._settings.shard_host)
        worker = authority.issue_client(root, "shard worker")
        client = authority.issue_client(self._root, _CLIENT)
        own = {
            _AUTHORITY: root.certificate,
            _OWN: server.key + server.certificate,
            "client.pem": client.certificate,
            "client.key": client.key,
            "members.pem": self._root.certificate,
        }
        for file, text in own.items():
            directories.write_private(place / file, text)
        return {_AUTHORITY: root.certificate, _OWN: worker.key + worker.certificate}

    @contextlib.asynccontextmanager
    async def _process(self, subject: Subject, count: int, place: Path) -> AsyncIterator[Process]:
        host = self._settings.shard_host
        words = (
            str(self._settings.shai), "analyze", "distribute", "--output", "json", "--server", subject.endpoint,
            "--certificate", str(place / "client.pem"), "--key", str(place / "client.key"),
            "--server-ca", str(place / "members.pem"), "--pipeline", subject.pipeline, "--shards", str(count),
            "--listen", f"[{host}]:0" if ":" in host else f"{host}:0", "--identity", str(place),
            "--limit-megabytes", str(self._settings.shard_megabytes),
        )  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            "setpriv", "--pdeathsig", "TERM", *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=answers.ANALYSIS.bytes,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(place)},
        )  # fmt: skip
        try:
            yield process
        finally:
            await _end(process)

    def _workers(self, shards: Shards, address: str, files: Mapping[str, str]) -> Workers:
        memory, scratch = f"{shards.memory_megabytes}Mi", f"{_ROOMS * self._settings.shard_megabytes}Mi"
        port = int(address.rpartition(":")[2])
        container = {
            "name": "shard",
            "image": self._settings.shard_image,
            "command": [str(self._settings.shai), "analyze", "worker"],
            "args": ["--of", str(shards.count), "--connect", address, "--identity", _MOUNTED],
            "resources": {
                "requests": {"cpu": f"{shards.cpu_millicores}m", "memory": memory, "ephemeral-storage": scratch},
                "limits": {"memory": memory, "ephemeral-storage": scratch},
            },
        }
        return Workers(
            kind="shai-analysis",
            namespace=NAMESPACE,
            label=_LABEL,
            count=shards.count,
            container=container,
            mounted=_MOUNTED,
            files=files,
            scratch=scratch,
            reached=[(self._settings.shard_host, port, port)],
            seconds=shards.seconds,
            failing={
                "backoffLimitPerIndex": 2,
                "maxFailedIndexes": 0,
                "podReplacementPolicy": "Failed",
                # A node that is drained is no fault of the shard.
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
                },
            },
        )


class _Lines:
    """What the process says: a line of JSON for each event."""

    def __init__(self, process: Process, about: str) -> None:
        if process.stdout is None or process.stderr is None:
            raise RuntimeError("the process was started without pipes")
        self._out, self._err = process.stdout, process.stderr
        self._about = about

    async def listening(self) -> str:
        """Return the address at which pods connect."""
        return str((await self._event())["listening"])

    async def result(self, done: Callable[[int], None]) -> dict[str, Any]:
        """Return the analysis at the end, and tell how many shards are done until then."""
        while True:
            event = await self._event()
            if "analysis" in event:
                told: dict[str, Any] = shapes.checked(event["analysis"], shapes.ANALYSIS, self._about)
                return told
            done(int(event.get("done") or 0))

    async def _event(self) -> dict[str, Any]:
        """Return the next event; MonitorError with what a monitor said, ShardingError without an event."""
        try:
            line = await self._out.readline()
        except ValueError as error:  # it is longer than an analysis may be
            raise answers.too_long(answers.ANALYSIS.bytes, self._about) from error
        if not line:
            why = cleaned((await self._err.read(_LOGGED)).decode(errors="replace"))
            _LOGGER.error("%s: %s", self._about, why)
            raise ShardingError("its shards have no result that can be put in force; the operator's log has more")
        event: dict[str, Any] = await asyncio.to_thread(answers.parse, line, answers.ANALYSIS, self._about)
        if event.get("problem") is not None:
            raise answers.problem(event["problem"], _CONFLICT, self._about)
        return event


def _failure(found: Object | None, job: Object) -> str:
    """Say why a Job will have no results; empty while it may."""
    if found is None or found["metadata"]["uid"] != job["metadata"]["uid"]:
        return "it was deleted"
    for known in (found.get("status") or {}).get("conditions") or ():
        if known["type"] in {"Failed", "FailureTarget"} and known["status"] == "True":
            return f"{known.get('reason', '')}: {known.get('message', '')}"
    return ""


def _progress(done: int, total: int) -> dict[str, Any]:
    return {"phase": "shards", "done": done, "total": total}


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
