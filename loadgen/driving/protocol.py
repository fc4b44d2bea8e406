# SPDX-License-Identifier: BSD-2-Clause
"""The client's side of Sys-E's HTTP interface: one connection is one session.

It does little work, so that the load generator's one core is faster than the system: requests are prebuilt bytes, and
the C parser of geventhttpclient reads the answers. A lost connection is an error. Reconnecting would start a new
session, so it is not done silently.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import quote

import gevent
import gevent.socket
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from geventhttpclient._parser import HTTPParseError, HTTPResponseParser

from loadgen.driving import addresses
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.datasets.population import Person

TIMEOUT_SECONDS = 15.0
"""For a connection, and for a whole request with its answer."""

BODY_BYTES = 4 << 20
"""The longest answer that is read."""

HELD_BYTES = 128 << 20
"""The most of all answers together that have come in part: a service that ends none, to thousands of users, must not
take the machine's memory."""

_MOST_WITHHELD = 1 << 31
_NONCE = re.compile("[0-9a-f]{2,256}")
_RECEIVE_BYTES = 65536
_RESULT_FIELDS = {"id", "title", "owner", "visibility", "snippet"}
_HTTP_OK, _HTTP_FORBIDDEN = 200, 403

SIGNED = "shai-session-v2\n{service}\n{pipeline}\n{user}\n{nonce}"
"""What a login signs, as a format."""


class ProtocolError(LoadgenError):
    """Sys-E's answer violates its interface: the text has the expected and the actual answer."""


class RefusedError(ProtocolError):
    """Sys-E refuses what it was asked for, because of a policy."""


@dataclass(frozen=True)
class FrontEnd:
    """A front end that a client means to reach. A login signs ``service`` and ``pipeline``.

    They come from the caller and never from an answer: another service could relay this one's nonce.
    """

    address: tuple[str, int]
    pipeline: str
    service: str
    """Where its users dial it, as HOST:PORT."""
    signed: str = SIGNED
    """What a login signs: a format with ``service``, ``pipeline``, ``user`` and ``nonce``."""

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"http://{addresses.authority(self.address)}"

    @classmethod
    def dialled(cls, address: tuple[str, int], pipeline: str, service: str = "", signed: str = SIGNED) -> FrontEnd:
        """Return the front end at an address, which is its service unless its manifest has another one."""
        return cls(address, pipeline, service or addresses.authority(address), signed)


@lru_cache(maxsize=65536)
def _key(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


def sign(person: Person, front_end: FrontEnd, nonce: str) -> str:
    """Return the signature of a session's nonce (lower-case hex) by ``person`` for a front end, in hex."""
    meant = {"service": front_end.service, "pipeline": front_end.pipeline}
    text = front_end.signed.format(user=person.name, nonce=nonce, **meant)
    return _key(person.seed).sign(text.encode()).hex()


class Session:
    """A connection to Sys-E, anonymous until login, then a user's.

    ``source`` is the local address, from which the monitor derives the region (empty: the kernel chooses).
    """

    def __init__(self, front_end: FrontEnd, source: str = "") -> None:
        self._front_end = front_end
        self._socket = gevent.socket.create_connection(
            front_end.address, timeout=TIMEOUT_SECONDS, source_address=(source, 0) if source else None
        )
        self._socket.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)

    def login(self, person: Person) -> dict[str, Any]:
        """Authenticate; return Sys-E's description of the session (principal, region, mode, instance)."""
        greeting = self.exchange("GET", "/session")
        nonce = greeting.get("nonce")
        if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
            raise ProtocolError(f"GET /session: expected a nonce, got {greeting!r:.200}")
        body = json.dumps({"principal": person.name, "signature": sign(person, self._front_end, nonce)})
        bound = self.exchange("POST", "/session", body.encode())
        if bound.get("principal") != person.name:
            raise ProtocolError(f"POST /session: expected principal {person.name!r}, got {bound!r:.200}")
        return bound

    def search(self, text: str, count: int = 10) -> dict[str, Any]:
        """Search; return the answer after checking that it belongs to this query and has the right form."""
        answer = self.exchange("GET", f"/search?q={quote(text, safe='')}&n={count}")
        if answer.get("query") != text:
            raise ProtocolError(f"/search: asked {text!r}, got an answer to {answer.get('query')!r:.200}")
        results = answer.get("results")
        if not isinstance(results, list) or len(results) > count:
            raise ProtocolError(f"/search: expected up to {count} results, got {results!r:.200}")
        for result in results:
            if not isinstance(result, dict) or not result.keys() >= _RESULT_FIELDS:
                raise ProtocolError(f"/search: a result lacks some of {sorted(_RESULT_FIELDS)}: {result!r:.200}")
        withheld = answer.get("withheld", 0)
        if type(withheld) is not int or not 0 <= withheld <= _MOST_WITHHELD:
            raise ProtocolError(f"/search: expected the number of documents withheld, got {withheld!r:.200}")
        return answer

    def document(self, number: int, name: str) -> dict[str, Any]:
        """Ask the support's front end for a document by the number and the name of its conduit; return it."""
        answer = self.exchange("GET", f"/document?id={number}&name={quote(name, safe='')}")
        if not answer.keys() >= _RESULT_FIELDS or answer["id"] != number:
            raise ProtocolError(f"/document: expected {sorted(_RESULT_FIELDS)} of {number}, got {answer!r:.200}")
        return answer

    def click(self, number: int) -> dict[str, Any]:
        """Open a result by the number of its conduit, which is remembered; return the document."""
        answer = self.exchange("POST", f"/click?id={number}")
        if answer.get("id") != number:
            raise ProtocolError(f"POST /click: expected document {number}, got {answer!r:.200}")
        return answer

    def topics(self) -> list[str]:
        """Have the user's interests turned into topics; return them."""
        found = self.exchange("POST", "/topics").get("topics")
        if not isinstance(found, list) or not all(isinstance(topic, str) for topic in found):
            raise ProtocolError(f"POST /topics: expected topics, got {found!r:.200}")
        return found

    def fileno(self) -> int:
        """Return the connection's descriptor, to wait for its end."""
        return int(self._socket.fileno())

    def close(self) -> None:
        """End the session by closing the connection."""
        self._socket.close()

    def exchange(self, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
        """Send one request and return the JSON object in the answer, whose status has to be 200."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._front_end.service}\r\nAccept: application/json\r\n"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        late = ProtocolError(f"{method} {path}: expected a whole answer within {TIMEOUT_SECONDS:.0f} s")
        with gevent.Timeout(TIMEOUT_SECONDS, late):
            self._socket.sendall(head.encode() + b"\r\n" + body)
            status, content = self._receive(f"{method} {path}")
        if status != _HTTP_OK:
            kind = RefusedError if status == _HTTP_FORBIDDEN else ProtocolError
            raise kind(f"{method} {path}: expected status 200, got {status}: {content[:200]!r}")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"{method} {path}: expected JSON, got {content[:200]!r}") from error
        if not isinstance(answer, dict):
            raise ProtocolError(f"{method} {path}: expected a JSON object, got {content[:200]!r}")
        return answer

    def _receive(self, request: str) -> tuple[int, bytes]:
        with Answer() as answer:
            while not answer.complete:
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    raise ProtocolError(f"{request}: expected an answer, the connection was closed")
                try:
                    answer.feed(data)
                except HTTPParseError as error:
                    raise ProtocolError(f"{request}: expected HTTP, got {data[:80]!r}") from error
                if len(answer.body) > BODY_BYTES:
                    raise ProtocolError(f"{request}: expected up to {BODY_BYTES} bytes, got more")
                if Answer.held > HELD_BYTES:
                    raise ProtocolError(f"{request}: expected answers that end, got {HELD_BYTES} bytes of others")
            return answer.get_code(), bytes(answer.body)


@contextlib.contextmanager
def logged_in(front_end: FrontEnd, person: Person, number: int = 1) -> Iterator[Session]:
    """Yield a new session of a person, from the home region; ``number`` is of one of its addresses."""
    near = addresses.is_loopback(front_end.address[0])
    session = Session(front_end, addresses.source_address(person.region, number) if near else "")
    try:
        session.login(person)
        yield session
    finally:
        session.close()


def search_once(front_end: FrontEnd, person: Person, text: str, count: int) -> dict[str, Any]:
    """Search in a new session, from the person's home region."""
    with logged_in(front_end, person) as session:
        return session.search(text, count)


class Answer(HTTPResponseParser):
    """Keeps the body but not the header fields, unlike the package's class. As a context it counts what is held."""

    held: ClassVar[int] = 0
    """Bytes of the bodies of all answers that are being read."""

    def __init__(self) -> None:
        super().__init__()
        self.complete = False
        self.body = bytearray()

    def __enter__(self) -> Self:
        """Return the answer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hold nothing more."""
        Answer.held -= len(self.body)

    def _on_body(self, data: bytes) -> None:
        self.body += data
        Answer.held += len(data)

    def _on_message_complete(self) -> None:
        self.complete = True

    def _ignore(self, *_: object) -> None:
        pass

    _on_status = _on_message_begin = _on_headers_complete = _on_header_field = _on_header_value = _ignore
