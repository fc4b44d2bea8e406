# SPDX-License-Identifier: BSD-2-Clause
"""Where Locust's page is served: on loopback only, at both of its addresses, under a name that is made for each start.

Browsers look for names that end with .localhost at 127.0.0.1 and ::1 themselves, and may try either first: another user
who has one of them gets the visits, with the password. A port has other owners before and after, and what a browser
keeps for one of them, such as a service worker, is the next one's, too. For a name that nobody could know it keeps
nothing.
"""

from __future__ import annotations

import errno
import secrets
import socket
from typing import TYPE_CHECKING

from loadgen.driving import serving
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Flask
    from locust.web import WebUI

NAME = f"{secrets.token_hex(16)}.localhost"
"""The page's host for as long as this process lives."""
_ADDRESSES = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
_MISSING = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class SiteError(LoadgenError):
    """The page cannot be served; the text says why, and what to do."""


def take(page: WebUI, application: Flask) -> None:
    """Take the page's port at both addresses, and let the page be served there when it is started; else SiteError."""
    if page.host != NAME:
        raise SiteError(
            "--web-host: the page is for this machine only, under a name that is another after each start. Leave it "
            f"out; from another machine, forward the port: ssh -L {page.port}:localhost:{page.port} HOST"
        )
    if page.tls_cert or page.tls_key:
        raise SiteError(
            "--tls-cert, --tls-key: the page is for this machine only, and no certificate has its name. Leave them out"
        )
    servers = [serving.server(listener, application) for listener in listeners(page.port)]

    def serve() -> None:
        first, *others = servers
        for server in others:
            server.start()
        try:
            first.serve_forever()
        finally:
            for server in others:
                server.stop()

    page.server = servers[0]  # which Locust stops
    page.start_server = serve  # type: ignore[method-assign]


def listeners(port: int) -> Sequence[socket.socket]:
    """Return sockets that listen at both addresses. A machine without IPv6 has one."""
    found: list[socket.socket] = []
    for family, address in _ADDRESSES.items():
        try:
            found.append(socket.create_server((address, port), family=family))
        except OSError as error:
            if found and error.errno in _MISSING:
                continue
            for listener in found:
                listener.close()
            raise SiteError(
                f"cannot serve the page at port {port} of {address}, and not of one address only, because browsers try "
                f"both: {error.strerror}. Choose another port with --web-port, or leave the page out with --headless"
            ) from error
    return found
