# SPDX-License-Identifier: BSD-2-Clause
"""Ports for servers that cannot choose one themselves."""

from __future__ import annotations

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port of one of this machine's addresses on which nobody listens."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
