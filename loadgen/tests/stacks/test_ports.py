# SPDX-License-Identifier: BSD-2-Clause
"""Free ports stay free until the server listens."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from loadgen.stacks.ports import free_port

CLIENTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1"])
def test_no_client_gets_the_port_before_its_server_listens(host: str) -> None:
    lowest, _ = map(int, CLIENTS.read_text().split())
    if lowest < 30000:
        pytest.skip(f"clients of this machine get ports from {lowest}; free_port expects 30000 or more ({CLIENTS})")
    assert free_port(host) < lowest


def test_a_port_on_which_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_port("127.0.0.2"), free_port("127.0.0.3")
    with socket.create_server(("127.0.0.1", taken)):
        choices = iter([taken, free])
        monkeypatch.setattr(random, "choice", lambda _: next(choices))
        assert free_port() == free


def test_a_port_that_was_given_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two servers that are about to start, one would find it taken."""
    first, second = free_port("127.0.0.2"), free_port("127.0.0.3")
    choices = iter([first, first, second])
    monkeypatch.setattr(random, "choice", lambda _: next(choices))
    assert [free_port(), free_port()] == [first, second]


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        free_port("192.0.2.1")
