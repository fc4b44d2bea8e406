# SPDX-License-Identifier: BSD-2-Clause
"""Requests that get no answer of an API server: each is a ClusterError, and nothing else."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from shai_operator.cluster.client import Cluster, ClusterError, NotServedError
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "one", "namespace": "there", "uid": "u", "resourceVersion": "1"},
    "spec": {},
}
REF = Reference("Lease", "there", "one")
REQUESTS: dict[str, Callable[[Cluster], Awaitable[object]]] = {
    "get": lambda cluster: cluster.get(REF),
    "list": lambda cluster: cluster.list("Lease"),
    "create": lambda cluster: cluster.create(LEASE),
    "replace": lambda cluster: cluster.replace(LEASE),
    "merge": lambda cluster: cluster.merge(REF, {"spec": {}}),
    "delete": lambda cluster: cluster.delete(REF, "u"),
}
ANSWERS = {
    "a load balancer's, without a type": "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "a page": "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>",
    "a page instead of an object": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>",
    "half a failure": "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
    "half an object": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
    "another kind of thing": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
    "no HTTP": "220 mail.example ESMTP\r\n\r\n",
    "nothing": "",
}


@asynccontextmanager
async def answering(answer: str) -> AsyncIterator[int]:
    """Give this answer to each request; yield the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer.encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_answer_is_an_error_that_callers_know(
    answer: str, request_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with answering(ANSWERS[answer]) as port:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, port)))
        cluster = Cluster()
        with pytest.raises(ClusterError, match="Lease"):
            await REQUESTS[request_](cluster)
        await cluster.close()


async def test_a_kind_that_is_not_served_is_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"kind": "Status", "status": "Failure", "code": 404, "message": "no such thing"})
    head = f"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    async with answering(head + body) as port:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, port)))
        cluster = Cluster()
        with pytest.raises(NotServedError, match="list Lease: no such thing"):
            await cluster.list("Lease")
        await cluster.close()


@asynccontextmanager
async def overloaded(times: int, seconds: str) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answer so many requests with 429, and the next one with an object; yield the port and what was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        status = "429 Too Many Requests" if len(asked) <= times else "200 OK"
        content = b"not now" if len(asked) <= times else json.dumps(LEASE).encode()
        head = f"HTTP/1.1 {status}\r\nRetry-After: {seconds}\r\nConnection: close\r\n"
        kind = "text/plain" if len(asked) <= times else "application/json"
        writer.write(f"{head}Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked


async def test_an_overloaded_api_server_is_asked_again_when_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with overloaded(3, "7") as (port, asked):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, port)))
        cluster = Cluster()
        monkeypatch.setattr("shai_operator.cluster.client.asyncio.sleep", sleep)
        found = await cluster.get(REF)
        await cluster.close()
    assert found is not None
    assert found["metadata"]["name"] == "one"
    assert len(asked) == 4
    assert all(7 <= seconds <= 7 * 1.25 for seconds in waits)


async def test_an_api_server_that_wants_to_be_left_alone_for_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with overloaded(1, "3600") as (port, asked):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, port)))
        cluster = Cluster()
        with pytest.raises(ClusterError):
            await cluster.get(REF)
        await cluster.close()
    assert len(asked) == 1


async def test_who_does_not_lead_any_more_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with overloaded(0, "0") as (port, asked):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, port)))
        cluster = Cluster()
        leads = True
        fenced = cluster.within(lambda: leads)
        await fenced.replace(LEASE)
        leads = False
        for name in ("create", "replace", "merge", "delete"):
            with pytest.raises(ClusterError, match="does not lead any more"):
                await REQUESTS[name](fenced)
        await fenced.get(REF)
        await cluster.close()
    assert [line.partition(b" ")[0] for line in asked] == [b"PUT", b"GET", b"GET"]


def kubeconfig(place: Path, port: int) -> Path:
    written = place / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "nobody", "user": {"token": "t"}}],
    }
    written.write_text(json.dumps(config))
    return written
