# SPDX-License-Identifier: BSD-2-Clause
"""Connections to monitors, of which nothing comes before the answer.

RFC 9110, section 15.2, lets a server send any number of interim responses (100 to 199) before the answer. aiohttp
passes over them, with no limit to their number and outside of all limits on answers. Monitors send none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

_FINAL = 200


class InterimError(Exception):
    """Something came before the answer."""


class _Finally(ResponseHandler):
    """A connection that ends at the first interim response."""

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take a response of which the head has been read."""
        message, _ = data
        if message.code >= _FINAL:
            super().feed_data(data, size)
        elif self.exception() is None:
            self.set_exception(InterimError(f"interim response {message.code} instead of an answer"))
            if self.transport is not None:
                self.transport.abort()


def connector(socket: Path | None, tls: ssl.SSLContext | None) -> aiohttp.BaseConnector:
    """Return what connects to a unix socket, or else to a network address."""
    made: aiohttp.BaseConnector
    made = aiohttp.UnixConnector(path=str(socket)) if socket else aiohttp.TCPConnector(ssl=tls or False)
    protocol: Any = functools.partial(_Finally, loop=made._loop)  # noqa: SLF001 - as below
    made._factory = protocol  # noqa: SLF001 - it cannot be given otherwise
    return made
