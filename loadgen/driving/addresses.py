# SPDX-License-Identifier: BSD-2-Clause
"""Source addresses of clients: loopback addresses that stand for regions.

The monitor derives a session's region from the peer's address by the facts in ``crds/examples/syse/facts.yaml``. These
networks have to be the same.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

_THIRD_BYTE = {"us": 0, "de": 1, "fr": 2}
_HOSTS_PER_REGION = 200
_FIRST_HOST = 10  # 127.0.0.1 and its neighbours are for servers


def source_address(region: str, number: int) -> str:
    """Return the address from which client ``number`` connects in ``region``."""
    return f"127.0.{_THIRD_BYTE[region]}.{_FIRST_HOST + number % _HOSTS_PER_REGION}"


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reached from loopback addresses; otherwise the real address counts."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def authority(address: tuple[str, int]) -> str:
    """Return an address as HOST:PORT."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read(url: str) -> tuple[str, int]:
    """Return host and port of a front end's URL; ValueError when it is none."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname:
            return parts.hostname, parts.port or 80
    except ValueError:  # a port that is no number, an address in brackets that is none
        pass
    raise ValueError(f"--host: expected http://HOST:PORT, got {url!r}")
