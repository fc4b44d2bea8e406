# SPDX-License-Identifier: BSD-2-Clause
"""The HTTP API of a monitor, over mutual TLS or a unix socket.

The monitor's ``internal/monitor/api`` describes the messages. Answers are returned as plain JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import aiohttp

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

_OK, _UNAVAILABLE = 200, 503
_LINE_LIMIT = 64 << 20
"""Limit for one line of a streamed answer, in bytes; a line can be a result with all its lists."""

QUICK = aiohttp.ClientTimeout(total=10.0)
LONG = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
"""The timeout of requests without a time limit; the caller cancels them."""


class MonitorError(Exception):
    """A monitor refused a request; ``str`` is a sentence with cause and remedy.

    ``status`` is the HTTP status, ``errors`` are the places in manifests, one text each.
    """

    def __init__(self, text: str, status: int, errors: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.errors = tuple(errors)

    @property
    def unavailable(self) -> bool:
        """Whether it does not answer or is not ready: the text says where it is, or what is wrong with its host."""
        return self.status == _UNAVAILABLE


class MonitorUnreachableError(MonitorError):
    """The monitor does not answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _UNAVAILABLE)


class MonitorLateError(MonitorUnreachableError):
    """The monitor, or the way to it, was too slow: it may serve nevertheless."""


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
            connector=connector, timeout=QUICK, read_bufsize=1 << 20, json_serialize=json.dumps
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
        return await self._call("GET", "/v1/status")

    async def metrics(self) -> str:
        """Return the monitor's metrics in the Prometheus text format."""
        async with self._send("GET", "/metrics", None, QUICK) as answer:
            return await answer.text()

    async def apply(self, sources: Sequence[Mapping[str, str]], label: str) -> dict[str, Any]:
        """Put a bundle in force, in place of the one before; return the changes."""
        body = {"sources": list(sources), "prune": True, "label": label}
        return await self._call("POST", "/v1/bundles", body, LONG)

    async def validate(self, sources: Sequence[Mapping[str, str]], *, alone: bool = False) -> dict[str, Any]:
        """Check manifests without applying them; with ``alone``, missing references are no errors."""
        return await self._call("POST", "/v1/validations", {"sources": list(sources), "alone": alone}, LONG)

    async def compare(
        self, sources: Sequence[Mapping[str, str]], progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Return the flows that a bundle would open and close, compared with the one in force."""
        return await self._stream("/v1/comparisons", {"sources": list(sources), "prune": True}, "comparison", progress)

    async def analyze(
        self, pipeline: str, scope: str, *, full: bool, progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Run the offline analysis; if this is cancelled, so is the analysis, and the last result stays in force."""
        body = {"pipeline": pipeline, "scope": scope.lower(), "full": full}
        return await self._stream("/v1/analyses", body, "analysis", progress)

    async def task(self, pipeline: str, task: str, verb: str) -> dict[str, Any]:
        """Do ``start``, ``stop`` or ``wait`` for a task; return its state."""
        return await self._call("POST", f"/v1/pipelines/{pipeline}/tasks/{task}:{verb}", None, LONG)

    async def _call(
        self, method: str, path: str, body: Any = None, limit: aiohttp.ClientTimeout = QUICK
    ) -> dict[str, Any]:
        async with self._send(method, path, body, limit) as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def _stream(
        self, path: str, body: Any, result: str, progress: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        async with self._send("POST", path, body, LONG) as answer:
            async for line in _lines(answer.content):
                if line.get("progress"):
                    progress(line["progress"])
                if line.get("problem"):
                    raise _problem(line["problem"], answer.status)
                if line.get(result) is not None:
                    return dict(line[result])
        raise MonitorUnreachableError(f"POST {path} at {self._name}: the monitor ended before it was done")

    def _send(self, method: str, path: str, body: Any, timeout: aiohttp.ClientTimeout) -> _Answer:
        return _Answer(self._name, self._session.request(method, self._base + path, json=body, timeout=timeout))


class _Answer:
    """A request; its answer is a success, and its failure a MonitorError."""

    def __init__(self, name: str, request: Any) -> None:
        self._name = name
        self._request = request

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            answer: aiohttp.ClientResponse = await self._request.__aenter__()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _silent(error, f"the monitor at {self._name} does not answer") from error
        if answer.status != _OK:
            try:
                raise await _refusal(answer)
            finally:
                await self._request.__aexit__(None, None, None)
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise _silent(error, f"the monitor at {self._name} broke off") from error


def _silent(error: Exception, what: str) -> MonitorUnreachableError:
    kind = MonitorLateError if isinstance(error, TimeoutError) else MonitorUnreachableError
    return kind(f"{what}: {str(error) or type(error).__name__}")


async def _refusal(answer: aiohttp.ClientResponse) -> MonitorError:
    text = await answer.text()
    try:
        return _problem(json.loads(text), answer.status)
    except ValueError:
        return MonitorError(f"unexpected answer {answer.status}: {text[:200]}", answer.status)


def _problem(problem: Mapping[str, Any], status: int) -> MonitorError:
    parts = [f"{problem.get('title', '')}: {problem.get('detail', '')}".strip(": ")]
    if problem.get("remedy"):
        parts.append(problem["remedy"])
    errors = problem.get("errors") or []
    return MonitorError("; ".join([*parts, *errors[:3]]), int(problem.get("status") or status), errors)


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """Split a stream into its lines of JSON, however long they are."""
    held = b""
    async for chunk in stream.iter_any():
        *whole, held = (held + chunk).split(b"\n")
        if len(held) > _LINE_LIMIT:
            raise MonitorError("the monitor's answer is too long", _OK)
        for line in whole:
            if line.strip():
                yield json.loads(line)
    if held.strip():
        yield json.loads(held)
