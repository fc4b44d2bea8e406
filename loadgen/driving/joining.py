# SPDX-License-Identifier: BSD-2-Clause
"""Workers of a measurement that run elsewhere: they connect to it, and get their orders over the connection.

Both sides show a certificate of an authority that exists for one measurement only. What a worker is sent (the keys of
the people who log in) and what it answers (the counts) is as secret and as true as that authority's key.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import ssl
import threading
import time
from typing import IO, TYPE_CHECKING, Self

from loadgen.datasets.population import Person, Population
from loadgen.driving.orders import Crew, Driver, DriverError
from loadgen.errors import PublicError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AUTHORITY, WORKER, SERVER = "ca.pem", "worker.pem", "server.pem"
"""Files of a directory: the authority's certificate, and each side's certificate with its key."""

_TRY_SECONDS, _AGAIN_SECONDS = 300.0, 1.0
"""As long as the measurement waits for workers: before that it starts twins, which may take long."""
_GREETING_SECONDS = 30.0
_LONGEST_LINE = 64 << 20
_MOST_GREETED = 64
"""How many connections there are at the same time that have not yet shown to be workers."""


class JoinError(PublicError):
    """A worker and its measurement have not found each other; the text says why and what to do."""


@contextlib.contextmanager
def join(address: str, tls: Path) -> Iterator[tuple[Population, IO[str], IO[str]]]:
    """Connect to a measurement as a worker; yield the people, and the connection for orders and for answers.

    A measurement that does not answer yet is tried for five minutes.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise JoinError(f"--connect: expected HOST:PORT, got {address!r}")
    context = ssl.create_default_context(cafile=str(tls / AUTHORITY))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(tls / WORKER)
    with _connected(host.strip("[]"), int(port), context) as connection:
        connection.settimeout(None)
        orders = connection.makefile("r", encoding="utf-8")
        with orders, connection.makefile("w", encoding="utf-8") as answers:
            yield _people(orders.readline(_LONGEST_LINE)), orders, answers


def _connected(host: str, port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    deadline = time.monotonic() + _TRY_SECONDS
    while True:
        try:
            plain = socket.create_connection((host, port), timeout=_GREETING_SECONDS)
            return context.wrap_socket(plain, server_hostname=host)
        except OSError as error:
            if isinstance(error, ssl.SSLError) or time.monotonic() > deadline:
                raise JoinError(f"cannot join the measurement at {host}:{port}: {error}") from error
        time.sleep(_AGAIN_SECONDS)


@contextlib.contextmanager
def joined(
    listener: socket.socket, tls: Path, workers: int, people: Population, *, seconds: float, tell: Callable[[str], None]
) -> Iterator[Crew]:
    """Wait until all workers have connected; JoinError when they do not."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tls / AUTHORITY))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tls / SERVER)
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as connections:
        door = connections.enter_context(_Door(listener, context, _plain(people)))
        drivers: list[Driver] = []
        while len(drivers) < workers:
            tell(f"waits for workers: {len(drivers)} of {workers} have connected")
            try:
                connection, driver = door.workers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise JoinError(
                    f"{len(drivers)} of {workers} workers have connected within {seconds:.0f} s: look at the pods of "
                    'their Job; a cluster without nodes, such as devcluster, needs workers as "Process"'
                ) from None
            connections.callback(_end, connection)
            drivers.append(connections.enter_context(driver))
        door.close()
        yield Crew(drivers)


class _Door:
    """Lets workers in. Each connection has a thread and a time of its own, so one that says nothing delays nobody.

    There are only so many: for another one, the oldest that has not yet shown to be a worker is ended.
    """

    def __init__(self, listener: socket.socket, context: ssl.SSLContext, people: str) -> None:
        self.workers: queue.SimpleQueue[tuple[ssl.SSLSocket, Driver]] = queue.SimpleQueue()
        self._listener = listener
        self._context = context
        self._people = people
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._greeted: dict[ssl.SSLSocket, threading.Thread] = {}
        """The connections that have not yet shown to be workers, the oldest first."""
        self._accepting = threading.Thread(target=self._accept, name="accept", daemon=True)

    def __enter__(self) -> Self:
        self._listener.settimeout(None)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let nobody in any more; those who were not taken from ``workers`` are sent away."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends a call that waits for a connection
        self._accepting.join()
        with self._lock:
            greeting = [self._turn_away(connection) for connection in list(self._greeted)]
        for thread in greeting:
            thread.join()
        while not self.workers.empty():
            _end(self.workers.get()[0])

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                plain, _ = self._listener.accept()
            except OSError:  # this process has too many descriptors, or the door was closed
                self._closed.wait(_AGAIN_SECONDS)
                continue
            plain.settimeout(_GREETING_SECONDS)
            with contextlib.suppress(OSError):  # it has gone already
                connection = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
                thread = threading.Thread(target=self._greet, args=(connection,), name="greet", daemon=True)
                with self._lock:
                    if len(self._greeted) >= _MOST_GREETED:
                        self._turn_away(next(iter(self._greeted)))
                    self._greeted[connection] = thread
                thread.start()

    def _greet(self, connection: ssl.SSLSocket) -> None:
        driver = None
        with contextlib.suppress(OSError, ValueError, DriverError):  # whoever says nothing true is no worker
            connection.do_handshake()
            orders = connection.makefile("w", encoding="utf-8")
            orders.write(self._people + "\n")
            orders.flush()
            driver = Driver(orders, connection.makefile("r", encoding="utf-8"), f"worker {connection.getpeername()[0]}")
            connection.settimeout(None)
        with self._lock:
            if self._greeted.pop(connection, None) is not None and driver is not None:
                self.workers.put((connection, driver))
                return
        _end(connection)

    def _turn_away(self, connection: ssl.SSLSocket) -> threading.Thread:
        """End a connection whose thread still uses it, and return the thread, which then ends."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # `SSLSocket.shutdown` also takes its TLS away
        return self._greeted.pop(connection)


def _end(connection: ssl.SSLSocket) -> None:
    """End a connection, though files of it are open."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _plain(people: Population) -> str:
    return json.dumps(
        {"people": [[one.name, one.seed.hex(), one.region] for one in people.people], "queries": people.queries}
    )


def _people(line: str) -> Population:
    try:
        found = json.loads(line)
        people = [Person(name, bytes.fromhex(seed), region) for name, seed, region in found["people"]]
        return Population(people, found["queries"])
    except (KeyError, TypeError, ValueError) as error:
        raise JoinError(f"the measurement sent no people: {error}") from error
