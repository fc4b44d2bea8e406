# SPDX-License-Identifier: BSD-2-Clause
"""Ports for servers that tests start and that cannot choose one themselves."""

from __future__ import annotations

import errno
import random
import socket

_BELOW_CLIENTS = range(15000, 30000)
"""Below the ports that the kernel gives to clients: nobody's connection takes one before its server listens."""


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port of one of this machine's addresses on which nobody listens."""
    while True:
        port = random.choice(_BELOW_CLIENTS)  # noqa: S311 - not a secret
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
