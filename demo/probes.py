# SPDX-License-Identifier: BSD-2-Clause
"""Whether a server on this machine says that it is ready."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

_SECONDS = 10.0


def is_ready(port: int, path: str) -> bool:
    """Whether the server at ``port`` of 127.0.0.1 answers a request for ``path`` with 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
