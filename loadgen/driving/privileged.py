# SPDX-License-Identifier: BSD-2-Clause
"""Ports that ordinary users cannot take: nobody else answers there when a server of root has ended or was killed."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path

_FIRST, _END = 600, 1024
"""As bindresvport(3): below these are the well-known services."""
_UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
"""The first port that everybody may take; other kernels than Linux have no such file, and 1024."""


def privileged_port(host: str) -> int:
    """Return a free port that only root can take; 0, which leaves the choice to the kernel, when this process cannot.

    The port is not reserved. It is chosen at random, and is none of a service in /etc/services.
    """
    end = min(_END, int(_UNPRIVILEGED.read_text())) if _UNPRIVILEGED.exists() else _END
    for port in random.sample(range(_FIRST, max(_FIRST, end)), k=max(0, end - _FIRST)):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except PermissionError:
                return 0
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                if not _is_known(port):
                    return port
    return 0


def _is_known(port: int) -> bool:
    try:
        socket.getservbyport(port, "tcp")
    except OSError:
        return False
    return True
