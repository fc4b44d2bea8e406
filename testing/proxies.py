# SPDX-License-Identifier: BSD-2-Clause
"""A proxy between the operator and the API server that can silence watches.

The operator speaks plain HTTP to it, so that the proxy sees which connection carries a watch; it speaks TLS to the API
server with the certificate of the kubeconfig. A silenced watch stays open, but transmits nothing more, and neither side
is told.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import yaml

from testing import kubeconfigs

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1 << 16
_WATCH = b"watch=true"


class SilencingProxy:
    """Runs in a thread of its own while entered."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        server = urlsplit(cluster["server"])
        self._upstream = str(server.hostname), int(server.port or 443)
        self._tls = kubeconfigs.tls(cluster, user)
        self._silent = False
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._port = 0
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self.kubeconfig = directory / "through-proxy.kubeconfig"
        """The kubeconfig for the operator, once the proxy is entered."""
        self._config = config

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        self._started.wait()
        self._config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._port}"}
        self._config["users"][0]["user"] = {}
        self.kubeconfig.write_text(yaml.safe_dump(self._config))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and close all connections."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def silence(self) -> None:
        """Stop transmitting the events of watches, of present and of new ones."""
        self._silent = True

    def restore(self) -> None:
        """Transmit the events of new watches; silenced ones have lost events, and stay silent."""
        self._silent = False

    async def _serve(self) -> None:
        listening = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._port = listening.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(*self._upstream, ssl=self._tls)
        except OSError:
            writer.close()
            return
        watched = asyncio.Event()
        directions = [
            asyncio.create_task(self._up(reader, forth, watched)),
            asyncio.create_task(self._down(back, writer, watched)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            writer.close()
            forth.close()

    async def _up(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, watched: asyncio.Event) -> None:
        while chunk := await source.read(_CHUNK):
            if _WATCH in chunk:
                watched.set()
            sink.write(chunk)
            await sink.drain()

    async def _down(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, watched: asyncio.Event) -> None:
        silenced = False
        while chunk := await source.read(_CHUNK):
            silenced = silenced or (self._silent and watched.is_set())
            if not silenced:
                sink.write(chunk)
                await sink.drain()
