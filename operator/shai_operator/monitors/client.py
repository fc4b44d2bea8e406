# SPDX-License-Identifier: BSD-2-Clause
"""The HTTP API of a monitor, over mutual TLS or a unix socket.

The monitor's ``internal/monitor/api`` describes the messages. Answers are returned as plain JSON, with what
`shapes` names and nothing else. Every method raises MonitorError.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode

import aiohttp

from shai_operator.monitors import answers, shapes
from shai_operator.monitors.errors import MonitorAnswerError, MonitorLateError, MonitorUnreachableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from shai_operator.monitors.shapes import Shape

_OK = 200

QUICK = aiohttp.ClientTimeout(total=10.0)
READING = aiohttp.ClientTimeout(total=60.0, sock_connect=10.0)
"""The timeout of a reading: a monitor may have to look through its whole audit log."""
LONG = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
"""The timeout of requests without a time limit; the caller cancels them."""


class MonitorClient:
    """One monitor. Use it as an async context, or call `close`; requests may run concurrently."""

    def __init__(self, *, socket: Path | None = None, address: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._name = str(socket or address)
        self._base = "http://monitor" if socket else f"https://{address}"
        connector: aiohttp.BaseConnector = (
            aiohttp.UnixConnector(path=str(socket)) if socket else aiohttp.TCPConnector(ssl=tls or False)
        )
        if socket is None and tls is None:
            raise ValueError(f"connect to {address}: an address needs TLS, or anybody could answer")
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=QUICK,
            read_bufsize=1 << 20,
            json_serialize=json.dumps,
            # A few bytes could be unpacked to any number of them, before the limits of `answers` count them.
            auto_decompress=False,
            headers={"Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def status(self) -> dict[str, Any]:
        """Return the monitor's state."""
        return await self._call("GET", "/v1/status", shapes.STATUS, most=answers.STATUS_BYTES)

    async def metrics(self) -> str:
        """Return the monitor's metrics in the Prometheus text format."""
        what = self._what("GET", "/metrics")
        async with self._send("GET", "/metrics", None, QUICK) as answer:
            raw = await answers.read(answer, answers.METRICS_BYTES, what)
        try:
            return raw.decode()
        except ValueError as error:
            raise MonitorAnswerError(f"{what}: {error}") from error

    async def apply(self, sources: Sequence[Mapping[str, str]], label: str) -> None:
        """Put a bundle in force, in place of the one before."""
        body = {"sources": list(sources), "prune": True, "label": label}
        await self._call("POST", "/v1/bundles", {}, body, LONG)

    async def validate(self, sources: Sequence[Mapping[str, str]], *, alone: bool = False) -> dict[str, Any]:
        """Check manifests without applying them; with ``alone``, missing references are no errors."""
        body = {"sources": list(sources), "alone": alone}
        return await self._call("POST", "/v1/validations", shapes.VALIDATION, body, LONG)

    async def compare(
        self, sources: Sequence[Mapping[str, str]], progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Return the flows that a bundle would open and close, compared with the one in force."""
        body = {"sources": list(sources), "prune": True}
        return await self._stream("/v1/comparisons", body, "comparison", shapes.COMPARISON, progress)

    async def analyze(
        self, pipeline: str, scope: str, *, full: bool, progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Run the offline analysis; if this is cancelled, so is the analysis, and the last result stays in force."""
        body = {"pipeline": pipeline, "scope": scope.lower(), "full": full}
        return await self._stream("/v1/analyses", body, "analysis", shapes.ANALYSIS, progress)

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
        told = await self._call("POST", "/v1/readings", shapes.SEALED, question, READING)
        return str(told["sealed"])

    async def _call(
        self,
        method: str,
        path: str,
        shape: Shape,
        body: Any = None,
        limit: aiohttp.ClientTimeout = QUICK,
        *,
        most: int = answers.RESULT_BYTES,
    ) -> dict[str, Any]:
        what = self._what(method, path)
        async with self._send(method, path, body, limit) as answer:
            found = answers.parse(await answers.read(answer, most, what), what)
        told: dict[str, Any] = shapes.checked(found, shape, what)
        return told

    async def _stream(
        self, path: str, body: Any, result: str, shape: Shape, progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        what = self._what("POST", path)
        async with self._send("POST", path, body, LONG) as answer:
            async for line in answers.lines(answer, answers.RESULT_BYTES, what):
                if line.get("progress") is not None:
                    progress(shapes.checked(line["progress"], shapes.PROGRESS, what))
                if line.get("problem") is not None:
                    raise answers.problem(line["problem"], answer.status, what)
                if line.get(result) is not None:
                    told: dict[str, Any] = shapes.checked(line[result], shape, what)
                    return told
        raise MonitorUnreachableError(f"{what}: the monitor ended before it was done")

    def _what(self, method: str, path: str) -> str:
        return f"{method} {path} at {self._name}"

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: Any, limit: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer to a request, if it is a success."""
        silence = "does not answer"
        try:
            async with self._session.request(
                method, self._base + path, json=body, timeout=limit, allow_redirects=False
            ) as answer:
                silence = "broke off"
                if answer.status != _OK:
                    raise await answers.refusal(answer, self._what(method, path))
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _silent(error, f"the monitor at {self._name} {silence}") from error


def _silent(error: Exception, what: str) -> MonitorUnreachableError:
    kind = MonitorLateError if isinstance(error, TimeoutError) else MonitorUnreachableError
    return kind(f"{what}: {str(error) or type(error).__name__}")
