# SPDX-License-Identifier: BSD-2-Clause
"""The stand-ins: one process that answers at the addresses of all members.

It reads a line of JSON for each member that begins (with address, port, certificate and key) or ends (with its name
alone), and says when that is done. It ends when there is nothing more to read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import sys
import tempfile
from typing import Any

from aiohttp import web

_LARGEST = 64 << 20


class StandIn:
    """One member: its bundle is in force as soon as it has it, and its tasks run."""

    def __init__(self) -> None:
        self._label = self._hash = ""
        self._looks = 0
        self._tasks: dict[str, list[str]] = {}
        self._runner: web.AppRunner | None = None

    async def begin(self, address: str, port: int, tls: ssl.SSLContext) -> None:
        """Answer at an address."""
        application = web.Application(client_max_size=_LARGEST)
        application.add_routes(
            [
                web.get("/v1/status", self._status),
                web.get("/metrics", self._metrics),
                web.post("/v1/bundles", self._apply),
                web.post("/v1/comparisons", self._compare),
                web.post("/v1/analyses", self._analyze),
                web.post("/v1/pipelines/{pipeline}/tasks/{task}", self._task),
                web.route("*", "/v1/pipelines/{pipeline}/tasks/{task}/runs/{run}", self._run),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port, ssl_context=tls).start()

    async def end(self) -> None:
        """Answer no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _status(self, _: web.Request) -> web.Response:
        self._looks += 1
        pipelines = [
            {
                "name": pipeline,
                "sessionTotal": self._looks,  # there is traffic: each look finds another number
                "tasks": [{"name": task, "state": "Running", "completed": False} for task in tasks],
                "lastAnalysis": {"hash": self._hash, "succeeded": True},
            }
            for pipeline, tasks in self._tasks.items()
        ]
        return web.json_response(
            {
                "started": "once",
                "ready": True,
                "machine": {"backend": "stand-in", "enforcement": "none"},
                "bundle": {"label": self._label, "hash": self._hash},
                "pipelines": pipelines,
            }
        )

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text="")

    async def _apply(self, request: web.Request) -> web.Response:
        body = await request.json()
        manifests = [json.loads(source["text"]) for source in body["sources"]]
        self._tasks = {
            manifest["metadata"]["name"]: list(manifest["spec"]["tasks"])
            for manifest in manifests
            if manifest["kind"] == "Pipeline"
        }
        self._label, self._hash = body["label"], hashlib.sha256(body["label"].encode()).hexdigest()
        return web.json_response({})

    async def _compare(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"comparison": {"from": self._hash, "to": self._hash}})

    async def _analyze(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"analysis": {"durationMicroseconds": 1}})

    async def _task(self, _: web.Request) -> web.Response:
        return web.json_response({"state": "Running"})

    async def _run(self, _: web.Request) -> web.Response:
        return web.json_response({"state": "Succeeded"})


def _tls(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile("w") as file:  # the ssl module reads keys only from files
        file.write(key + certificate)
        file.flush()
        context.load_cert_chain(file.name)
    return context


async def _take(line: bytes, members: dict[str, StandIn]) -> None:
    told: dict[str, Any] = json.loads(line)
    before = members.pop(told["name"], None)
    if before is not None:
        await before.end()
    if "address" in told:
        members[told["name"]] = made = StandIn()
        await made.begin(told["address"], told["port"], _tls(told["certificate"], told["key"]))


async def main() -> None:
    """Do what each line says, until there are no more."""
    members: dict[str, StandIn] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        await _take(line, members)
        print("done", flush=True)
    await asyncio.gather(*(member.end() for member in members.values()))


if __name__ == "__main__":
    asyncio.run(main())
