# SPDX-License-Identifier: BSD-2-Clause
"""A mirror on loopback that can cut connections, lie, and forget."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Mirror:
    """What the mirror does. Requests are counted as they come."""

    content: bytes
    cut_after: list[int] = field(default_factory=list)
    """For each request in turn, the number of bytes after which the connection is closed; then none is cut."""
    ranges: bool = True
    status: int = 200
    phrase: str | None = None
    """What a refusal says beside its number."""
    location: str = ""
    """Where requests are sent to; empty: they are answered."""
    etag: str = ""
    shift: int = 0
    """Added to where an answer with a part begins."""
    endless: bytes = b""
    """Sent again and again, in place of the content, until the connection is closed."""
    pause_seconds: float = 0.0
    """Time between two of them."""
    asked: list[str] = field(default_factory=list)
    """The ranges of the requests; empty for the whole file."""
    url: str = ""

    @property
    def sha512(self) -> str:
        """The checksum of the content."""
        return hashlib.sha512(self.content).hexdigest()


@contextmanager
def serving(mirror: Mirror) -> Iterator[Mirror]:
    """Serve on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            mirror.asked.append(wanted)
            if mirror.status != 200:
                self.send_error(mirror.status, mirror.phrase)
                return
            if mirror.location:
                self.send_response(302)
                self.send_header("Location", mirror.location)
                self.end_headers()
                return
            if mirror.endless:
                self.send_response(200)
                self.end_headers()
                with suppress(ConnectionError):
                    while True:
                        self.wfile.write(mirror.endless)
                        time.sleep(mirror.pause_seconds)
                return
            etag = mirror.etag or f'"{mirror.sha512[:16]}"'
            fresh = self.headers.get("If-Range", etag) == etag
            begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and mirror.ranges and fresh else 0
            part = mirror.content[begin:]
            self.send_response(206 if begin else 200)
            if begin:
                total = len(mirror.content)
                self.send_header("Content-Range", f"bytes {begin + mirror.shift}-{total - 1}/{total}")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", etag)
            self.end_headers()
            self.wfile.write(part[: mirror.cut_after.pop(0)] if mirror.cut_after else part)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
