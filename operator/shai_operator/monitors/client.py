# SPDX-License-Identifier: BSD-2-Clause
"""The HTTP API of a monitor, over mutual TLS or a unix socket.

The monitor's ``internal/monitor/api`` describes the messages. Answers are returned as plain JSON, with what
`shapes` names and nothing else. Every method raises MonitorError.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp

from shai_operator.monitors import answers, connections, counters, shapes, streams
from shai_operator.monitors.errors import MonitorAnswerError, MonitorLateError, MonitorUnreachableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from shai_operator.monitors.answers import Most
    from shai_operator.monitors.apart import Apart
    from shai_operator.monitors.shapes import Shape

_T = TypeVar("_T")

_OK = 200
_COMPARISON = "comparison", shapes.COMPARISON, answers.COMPARISON
_ANALYSIS = "analysis", shapes.ANALYSIS, answers.ANALYSIS
"""The name, the shape and the limits of a stream's result."""

QUICK = aiohttp.ClientTimeout(total=10.0)
READING = aiohttp.ClientTimeout(total=60.0, sock_connect=10.0)
"""The timeout of a reading: a monitor may have to look through its whole audit log."""
LONG = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
"""The timeout of requests without a time limit; the caller cancels them."""
STREAMED = aiohttp.ClientTimeout(total=86_400.0, sock_connect=10.0)
"""The timeout of analyses and comparisons: the longest one that an AnalysisRun can have, a day."""


class MonitorClient:
    """One monitor. Use it as an async context, or call `close`; requests may run concurrently.

    ``apart`` receives and checks the answers, for monitors that are not trusted; None: the caller's event loop.
    """

    def __init__(
        self,
        *,
        socket: Path | None = None,
        address: str = "",
        tls: ssl.SSLContext | None = None,
        apart: Apart | None = None,
    ) -> None:
        if socket is None and tls is None:
            raise ValueError(f"connect to {address}: an address needs TLS, or anybody could answer")
        self._name = str(socket or address)
        self._base = "http://monitor" if socket else f"https://{address}"
        self._socket, self._tls, self._apart = socket, tls, apart
        self._opened: aiohttp.ClientSession | None = None
        self._large = asyncio.Semaphore(answers.LARGE_AT_ONCE)

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._done(self._close())

    async def status(self) -> dict[str, Any]:
        """Return the monitor's state."""
        return await self._call("GET", "/v1/status", shapes.STATUS, most=answers.STATUS)

    async def metrics(self) -> dict[str, float]:
        """Return the sums of the monitor's counters, as `counters.sums` does."""
        return await self._done(self._metrics())

    async def apply(self, sources: Sequence[Mapping[str, str]], label: str) -> None:
        """Put a bundle in force, in place of the one before."""
        body = {"sources": list(sources), "prune": True, "label": label}
        await self._call("POST", "/v1/bundles", {}, body, LONG)

    async def validate(self, sources: Sequence[Mapping[str, str]], *, alone: bool = False) -> dict[str, Any]:
        """Check manifests without applying them; with ``alone``, missing references are no errors."""
        body = {"sources": list(sources), "alone": alone}
        return await self._call("POST", "/v1/validations", shapes.VALIDATION, body, LONG, most=answers.CHECKS)

    async def compare(
        self, sources: Sequence[Mapping[str, str]], progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Return the flows that a bundle would open and close, compared with the one in force."""
        body = {"sources": list(sources), "prune": True}
        return await self._stream("/v1/comparisons", body, _COMPARISON, progress)

    async def analyze(
        self, pipeline: str, scope: str, *, full: bool, progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Run the offline analysis; if this is cancelled, so is the analysis, and the last result stays in force."""
        body = {"pipeline": pipeline, "scope": scope.lower(), "full": full}
        return await self._stream("/v1/analyses", body, _ANALYSIS, progress)

    async def task(self, pipeline: str, task: str, verb: str) -> dict[str, Any]:
        """Do ``start``, ``stop`` or ``wait`` for a task; return its state."""
        return await self._call("POST", f"/v1/pipelines/{pipeline}/tasks/{task}:{verb}", shapes.TASK, None, LONG)

    async def run(self, method: str, pipeline: str, task: str, identity: str, started: str) -> dict[str, Any]:
        """Start a run of a task (PUT), wait for its end (GET) or end it (DELETE); return its state.

        The run has the caller's ``identity``, so that a request can be repeated. ``started`` is when the monitor has to
        have started: one that started later has ended the run, or never began it, and refuses with status 412.
        """
        query = urlencode({"started": started})
        path = f"/v1/pipelines/{quote(pipeline, '')}/tasks/{quote(task, '')}/runs/{quote(identity, '')}?{query}"
        return await self._call(method, path, shapes.RUN, None, LONG)

    async def read(self, question: Mapping[str, Any]) -> str:
        """Ask for what only administrators read, on behalf of a user; return the answer, sealed for its reader."""
        told = await self._call("POST", "/v1/readings", shapes.SEALED, question, READING, most=answers.SEALED)
        return str(told["sealed"])

    async def _call(
        self,
        method: str,
        path: str,
        shape: Shape,
        body: Any = None,
        limit: aiohttp.ClientTimeout = QUICK,
        *,
        most: Most = answers.RESULT,
    ) -> dict[str, Any]:
        async def work() -> dict[str, Any]:
            what = self._what(method, path)
            async with self._send(method, path, body, limit) as answer:
                found = answers.parse(await answers.read(answer, most.bytes, what, self._large), most, what)
            told: dict[str, Any] = shapes.checked(found, shape, what)
            return told

        return await self._done(work())

    async def _stream(
        self,
        path: str,
        body: Any,
        result: tuple[str, Shape, Most],
        progress: Callable[[Mapping[str, Any]], None],
    ) -> dict[str, Any]:
        name, shape, most = result
        loop = asyncio.get_running_loop()

        def tell(found: Mapping[str, Any]) -> None:
            loop.call_soon_threadsafe(progress, found)

        async def work() -> dict[str, Any]:
            what = self._what("POST", path)
            async with self._send("POST", path, body, STREAMED) as answer:
                found = await streams.result(answer, name, most, tell, what, large=self._large)
            told: dict[str, Any] = shapes.checked(found, shape, what)
            return told

        return await self._done(work())

    async def _metrics(self) -> dict[str, float]:
        what = self._what("GET", "/metrics")
        async with self._send("GET", "/metrics", None, QUICK) as answer:
            raw = await answers.read(answer, answers.METRICS_BYTES, what, self._large)
        return counters.sums(raw, what)

    async def _done(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do what receives and checks an answer where that is to be done."""
        return await (work if self._apart is None else self._apart.run(work))

    def _session(self) -> aiohttp.ClientSession:
        """Return the session, which belongs to the event loop in which it is made."""
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=connections.connector(self._socket, self._tls),
                timeout=QUICK,
                json_serialize=json.dumps,
                # A few bytes could be unpacked to any number of them, before the limits of `answers` count them.
                auto_decompress=False,
                headers={"Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._opened

    async def _close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    def _what(self, method: str, path: str) -> str:
        return f"{method} {path} at {self._name}"

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: Any, limit: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer to a request, if it is a success."""
        silence = "does not answer"
        try:
            async with self._session().request(
                method, self._base + path, json=body, timeout=limit, allow_redirects=False
            ) as answer:
                silence = "broke off"
                if answer.status != _OK:
                    raise await answers.refusal(answer, self._what(method, path), self._large)
                yield answer
        except connections.InterimError as error:
            raise MonitorAnswerError(f"{self._what(method, path)}: {error}. Is it a Shai monitor?") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _silent(error, f"the monitor at {self._name} {silence}") from error


def _silent(error: Exception, what: str) -> MonitorUnreachableError:
    kind = MonitorLateError if isinstance(error, TimeoutError) else MonitorUnreachableError
    return kind(f"{what}: {str(error) or type(error).__name__}")
