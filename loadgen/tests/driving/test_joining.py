# SPDX-License-Identifier: BSD-2-Clause
"""Workers that connect to a measurement: real processes and TLS on loopback."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from loadgen.driving import joining
from loadgen.driving.joining import AUTHORITY, SERVER, WORKER, JoinError
from loadgen.driving.orders import Order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.datasets.population import Population
    from loadgen.tests.fake_syse import FakeSysE

HOST = "127.0.0.1"


def certificates(directory: Path) -> Path:
    """Make an authority, and a certificate for each side, as an operator does."""
    directory.mkdir()
    root_key = ec.generate_private_key(ec.SECP256R1())
    root = made("root", root_key, "root", root_key, x509.BasicConstraints(ca=True, path_length=0))
    (directory / AUTHORITY).write_bytes(root)
    for file in (SERVER, WORKER):
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = made(file, key, "root", root_key, x509.BasicConstraints(ca=False, path_length=None))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (directory / file).write_bytes(private + leaf)
    return directory


def made(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    constraints: x509.BasicConstraints,
) -> bytes:
    now = dt.datetime.now(dt.UTC)

    def called(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    builder = x509.CertificateBuilder(called(issuer), called(name), key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(hours=1))
    builder = builder.not_valid_after(now + dt.timedelta(hours=1))
    builder = builder.add_extension(constraints, critical=True)
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as made:
        yield made


def worker(listener: socket.socket, tls: Path) -> subprocess.Popen[str]:
    address = f"{HOST}:{listener.getsockname()[1]}"
    words = [sys.executable, "-m", "loadgen.driving.driver", "--connect", address, "--tls", str(tls)]
    return subprocess.Popen(words, text=True, stderr=subprocess.PIPE)


def test_workers_join_and_their_counts_add_up(
    listener: socket.socket, tmp_path: Path, people: Population, server: FakeSysE
) -> None:
    tls = certificates(tmp_path / "tls")
    told: list[str] = []
    with worker(listener, tls) as one, worker(listener, tls) as two:
        # Somebody else also connects: it says nothing, and is no worker.
        with contextlib.closing(socket.create_connection(listener.getsockname())) as silent:
            silent.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with joining.joined(listener, tls, 2, people, seconds=120, tell=told.append) as crew:
                to = server.front_end
                order = Order(to.url, to.pipeline, to.service, session_length=3, seconds=0.5, users=4, seed=1)
                outcome = crew.run(order)
                assert outcome.failures == 0, outcome.errors
                assert outcome.queries == len(server.searched) == 3 * outcome.sessions
                assert outcome.sessions == len(server.logins) >= 4
        assert (one.wait(), two.wait()) == (0, 0), "they end with the measurement"
    assert told == [f"waits for workers: {number} of 2 have connected" for number in (0, 1)]


def test_connections_that_say_nothing_delay_no_worker_and_are_only_so_many(
    listener: socket.socket, tmp_path: Path, people: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "_GREETING_SECONDS", 3600.0)
    monkeypatch.setattr(joining, "_MOST_GREETED", 4)
    tls = certificates(tmp_path / "tls")
    with contextlib.ExitStack() as stack:
        silent: list[socket.socket] = []
        started: list[subprocess.Popen[str]] = []

        def tell(_: str) -> None:
            address = listener.getsockname()
            silent.extend(stack.enter_context(socket.create_connection(address, timeout=120)) for _ in range(10))
            assert [connection.recv(1) for connection in silent[:6]] == [b""] * 6, "the others have their places"
            started.append(stack.enter_context(worker(listener, tls)))

        with joining.joined(listener, tls, 1, people, seconds=120, tell=tell):
            assert [connection.recv(1) for connection in silent[6:]] == [b""] * 4, "all workers are there"
            assert not [thread for thread in threading.enumerate() if thread.name in {"accept", "greet"}]
        assert started[0].wait() == 0


def test_a_worker_with_a_certificate_of_another_authority_is_none(
    listener: socket.socket, tmp_path: Path, people: Population
) -> None:
    own, other = certificates(tmp_path / "own"), certificates(tmp_path / "other")
    trusting = tmp_path / "trusting"  # it trusts the measurement, which does not trust it
    trusting.mkdir()
    (trusting / AUTHORITY).write_text((own / AUTHORITY).read_text())
    (trusting / WORKER).write_text((other / WORKER).read_text())
    with (
        worker(listener, trusting) as stranger,
        pytest.raises(JoinError, match="0 of 1 workers have connected within 5 s"),
        joining.joined(listener, own, 1, people, seconds=5, tell=lambda _: None),
    ):
        pytest.fail("a stranger was taken for a worker")
    listener.close()
    assert stranger.returncode == 1


def test_a_worker_sends_nothing_to_a_measurement_that_it_does_not_know(listener: socket.socket, tmp_path: Path) -> None:
    own, other = certificates(tmp_path / "own"), certificates(tmp_path / "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(other / SERVER)
    seen: list[bytes] = []

    def pretend() -> None:
        plain, _ = listener.accept()
        with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
            seen.append(connection.recv(100))

    thread = threading.Thread(target=pretend)
    thread.start()
    with worker(listener, own) as refusing:
        _, text = refusing.communicate()
    thread.join()
    assert refusing.returncode == 1
    assert "cannot join the measurement" in text
    assert seen in ([], [b""])


@pytest.mark.parametrize("address", ["nowhere", "host:port", ":1"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(JoinError, match="expected HOST:PORT"), joining.join(address, tmp_path):
        pytest.fail("it connected")
