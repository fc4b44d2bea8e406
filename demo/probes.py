# SPDX-License-Identifier: BSD-2-Clause
"""Whether a server on this machine says that it is ready."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

_SECONDS = 10.0


def is_ready(address: tuple[str, int], path: str) -> bool:
    """Whether the server at this host and port answers a request for ``path`` with 200."""
    connection = HTTPConnection(*address, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
