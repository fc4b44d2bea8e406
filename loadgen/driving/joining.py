# SPDX-License-Identifier: BSD-2-Clause
"""Workers of a measurement that run elsewhere: they connect to it, and get their orders over the connection.

Both sides show a certificate of an authority that exists for one measurement only. What a worker is sent (the keys of
the people who log in) and what it answers (the counts) is as secret and as true as that authority's key.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from typing import IO, TYPE_CHECKING

from loadgen.datasets.population import Person, Population
from loadgen.driving.orders import Crew, Driver, DriverError
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AUTHORITY, WORKER, SERVER = "ca.pem", "worker.pem", "server.pem"
"""Files of a directory: the authority's certificate, and each side's certificate with its key."""

_TRY_SECONDS, _AGAIN_SECONDS = 60.0, 1.0
_GREETING_SECONDS = 30.0
_LONGEST_LINE = 64 << 20


class JoinError(LoadgenError):
    """A worker and its measurement have not found each other; the text says why and what to do."""


@contextlib.contextmanager
def join(address: str, tls: Path) -> Iterator[tuple[Population, IO[str], IO[str]]]:
    """Connect to a measurement as a worker; yield the people, and the connection for orders and for answers.

    A measurement that does not answer yet is tried for a minute.
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
    text = _plain(people)
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as connections:
        drivers: list[Driver] = []
        while len(drivers) < workers:
            tell(f"waits for workers: {len(drivers)} of {workers} have connected")
            connection = _accept(listener, context, deadline)
            if connection is None:
                raise JoinError(
                    f"{len(drivers)} of {workers} workers have connected within {seconds:.0f} s: look at the pods of "
                    'their Job; a cluster without nodes, such as devcluster, needs workers as "Process"'
                )
            connections.callback(_end, connection)
            with contextlib.suppress(OSError, DriverError):  # whoever says nothing true is no worker
                orders = connection.makefile("w", encoding="utf-8")
                orders.write(text + "\n")
                orders.flush()
                driver = Driver(orders, connection.makefile("r", encoding="utf-8"), f"worker {len(drivers)}")
                connection.settimeout(None)
                drivers.append(connections.enter_context(driver))
        yield Crew(drivers)


def _accept(listener: socket.socket, context: ssl.SSLContext, deadline: float) -> ssl.SSLSocket | None:
    """Return the next connection with a certificate of the authority; None when there is none until the deadline."""
    while (left := deadline - time.monotonic()) > 0:
        listener.settimeout(left)
        with contextlib.suppress(OSError):  # a connection of somebody else, which ends here
            plain, _ = listener.accept()
            plain.settimeout(min(left, _GREETING_SECONDS))
            return context.wrap_socket(plain, server_side=True)
    return None


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
