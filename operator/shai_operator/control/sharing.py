# SPDX-License-Identifier: BSD-2-Clause
"""One address for the replicas of one user on one machine.

They share the listening socket itself: each may accept the next connection, and one that has been killed, stopped or is
busy accepts none. With sockets of their own at one port (SO_REUSEPORT), the kernel would give each its part of the
connections: those of a stopped one would wait until the API server gives up, and those in the queue of one that ends
would be reset. An operator of another cluster could also take part by mistake.

A replica gets the socket from another one over a Unix socket in the user's private directory. If no other one offers
it, the replica makes a new one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from shai_operator.control import connections
from shai_operator.providers import directories

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_LOGGER = logging.getLogger(__name__)
_ANSWER_SECONDS = 1.0
_MOST = 16
"""More sockets than a host name has addresses."""


@asynccontextmanager
async def shared(host: str, port: int, authority: str, directory: Path) -> AsyncIterator[list[socket.socket]]:
    """Yield the sockets that listen at an address, and offer them to others with this authority; OSError when none can.

    ``directory`` is the user's private one. Who enters this closes the sockets.
    """
    offers = f"shared-{hashlib.sha256(f'{host}:{port} {authority}'.encode()).hexdigest()[:8]}"
    path = directory / f"{offers}.{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as offer:
        with directories.guard(directory):
            path.unlink(missing_ok=True)  # of an operator that was killed and had the same process id
            listening = _received(directory, offers) or connections.listen(host, port)
            offer.bind(str(path))
            offer.listen()
        task = asyncio.create_task(_offer(offer, [one.fileno() for one in listening]), name="offer")
        try:
            yield listening
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            path.unlink(missing_ok=True)


def _received(directory: Path, offers: str) -> list[socket.socket]:
    """Return the sockets of another operator; none if no other one answers."""
    for path in sorted(directory.glob(f"{offers}.*")):
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_ANSWER_SECONDS)
            try:
                asking.connect(str(path))
                _, descriptors, _, _ = socket.recv_fds(asking, 1, _MOST)
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)  # its operator was killed
            except OSError as error:
                _LOGGER.warning("another operator does not share its address: %s: %s", path, error)
            else:
                if descriptors:
                    return [socket.socket(fileno=descriptor) for descriptor in descriptors]
    return []


async def _offer(offer: socket.socket, descriptors: list[int]) -> None:
    """Give the sockets to those who ask, until cancelled."""
    loop = asyncio.get_running_loop()
    offer.settimeout(0)
    while True:
        asking, _ = await loop.sock_accept(offer)
        with asking, suppress(OSError):  # who asked has gone already
            socket.send_fds(asking, [b"."], descriptors)
