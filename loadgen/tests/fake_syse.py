# SPDX-License-Identifier: BSD-2-Clause
"""A small Sys-E for tests: the HTTP interface with real signature checks and no documents.

Run as a program it prints its port, then serves until it is ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loadgen.datasets.population import Population, load
from loadgen.driving.protocol import FrontEnd

SIGNED = "shai-session-v2\n{service}\n{pipeline}\n{user}\n{nonce}"
"""What a login has to sign."""


class FakeSysE(ThreadingHTTPServer):
    """Counts connections and answers every search with one result that echoes the query."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, people: Population, port: int = 0, *, leaky: bool = False, signed: str = SIGNED) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.people = people
        self.leaky = leaky
        self.signed = signed
        self.connections: list[str] = []
        self.logins: list[str] = []
        self.searched: list[str] = []
        """The texts of the searches that were answered."""
        self.misbehave = ""
        self.body = b""
        """The body of each answer, if it is not empty."""

    @property
    def front_end(self) -> FrontEnd:
        return FrontEnd.dialled(("127.0.0.1", self.server_port), "syse")

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: FakeSysE

    def setup(self) -> None:
        super().setup()
        self.principal = ""
        self.nonce = f"{len(self.server.connections):064x}"
        self.server.connections.append(self.client_address[0])

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/session":
            self._answer(200, {"nonce": self.nonce, "region": "us", "principal": self.principal or None})
        elif parts.path == "/healthz":
            self._answer(200, {})
        elif parts.path == "/search" and not self.principal:
            self._answer(401, {"error": "log in first"})
        elif parts.path == "/search":
            text = parse_qs(parts.query)["q"][0]
            self.server.searched.append(text)
            results = [{"id": 1, "title": text, "owner": "-", "visibility": "public", "snippet": "…"}]
            if text.startswith("bob's") and (self.principal == "bob" or self.server.leaky):
                results.append({"id": 2, "title": text, "owner": "bob", "visibility": "private", "snippet": "…"})
            self._answer(200, {"query": text, "user": self.principal, "results": results, "withheld": 0})
        else:
            self._answer(404, {"error": "no such page"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            key = Ed25519PrivateKey.from_private_bytes(self.server.people[body["principal"]].seed).public_key()
            key.verify(bytes.fromhex(body["signature"]), self._signed_text(body["principal"]))
        except (KeyError, InvalidSignature):
            self._answer(403, {"error": "wrong signature"})
            return
        self.principal = body["principal"]
        self.server.logins.append(self.principal)
        self._answer(200, {"principal": self.principal, "region": "us", "mode": "shai", "instance": "worker"})

    def _signed_text(self, principal: str) -> bytes:
        service = self.server.front_end.service
        return self.server.signed.format(service=service, pipeline="syse", user=principal, nonce=self.nonce).encode()

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        misbehave = self.server.misbehave if self.path.startswith("/search") else ""
        if misbehave == "close":
            self.close_connection = True
            return
        if misbehave == "echo":
            answer = {**answer, "query": "something else"}
        if misbehave == "shape":
            answer = {**answer, "results": [{"id": 1}]}
        body = b"<html>" if misbehave == "html" else self.server.body or json.dumps(answer).encode()
        self.send_response(500 if misbehave == "status" else status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError) if self.server.body or misbehave else contextlib.nullcontext():
            self._write(body, slowly=misbehave == "trickle")

    def _write(self, body: bytes, *, slowly: bool) -> None:
        if not slowly:
            self.wfile.write(body)
            return
        for byte in body:
            self.wfile.write(bytes([byte]))
            time.sleep(0.1)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--leaky", action="store_true")
    options = parser.parse_args()
    server = FakeSysE(load(options.data), options.port, leaky=options.leaky)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
