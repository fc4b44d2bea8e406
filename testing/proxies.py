# SPDX-License-Identifier: BSD-2-Clause
"""A proxy between the operator and the API server that can silence watches.

The operator speaks plain HTTP to it, so that the proxy sees which connection carries a watch; it speaks TLS to the API
server with the certificate of the kubeconfig. A silenced watch stays open, but transmits nothing more, and neither side
is told.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from testing.interposed import Interposed

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1 << 16
_WATCH = b"watch=true"


class SilencingProxy(Interposed):
    """Runs in a thread of its own while entered."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        super().__init__(kubeconfig, directory, "through-proxy")
        server = urlsplit(self._server)
        self._upstream = str(server.hostname), int(server.port or 443)
        self._silent = False

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
        await self._end_others()

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
