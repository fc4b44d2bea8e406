# SPDX-License-Identifier: BSD-2-Clause
"""Ports for servers that need a port number before they start."""

from __future__ import annotations

import errno
import random
import socket
from collections import deque

_TRIED = 32
_ANSWER_SECONDS = 5.0
_BELOW_CLIENTS = range(15000, 30000)
"""Below the ports that the kernel gives to clients, so no connection takes one before its server listens.

The kernel's own choice (port 0) is one of the clients' ports.
"""
_given: deque[tuple[str, int]] = deque(maxlen=1000)
"""What `free_port` has returned last: there may not listen anybody yet when the next is chosen."""


def next_closed(host: str, after: int) -> int:
    """Return the next port of another machine's address that refuses connections; OSError if it is not reached.

    Nothing reserves it. A firewall that drops connections makes this slow, and then fail.
    """
    for port in range(after + 1, after + _TRIED + 1):
        try:
            with socket.create_connection((host, port), timeout=_ANSWER_SECONDS):
                pass
        except ConnectionRefusedError:
            return port
    raise OSError(errno.EADDRINUSE, f"{host}: all ports from {after + 1} to {after + _TRIED} are taken")


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port of one of this machine's addresses on which nobody listens; OSError if it has no such address.

    The port is not reserved. A process does not get the same again soon, and because it is chosen at random, two
    processes hardly ever get the same.
    """
    while True:
        port = random.choice(_BELOW_CLIENTS)  # noqa: S311 - not a secret
        if (host, port) in _given:
            continue
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                _given.append((host, port))
                return port
