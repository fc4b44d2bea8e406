# SPDX-License-Identifier: BSD-2-Clause
"""A pool, and keys of its own for each run."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from images import machine

if TYPE_CHECKING:
    from images.machine import HostKey

_EXAMPLE = Path(__file__).parents[1] / "examples" / "pool.yaml"


def openssh() -> tuple[str, str]:
    """Return a new Ed25519 key pair: the private key's file, and the line of the public key."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@pytest.fixture
def pool() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(_EXAMPLE.read_text())
    return copy.deepcopy(read)


@pytest.fixture
def public_key() -> str:
    return openssh()[1] + " alice@example.org"


@pytest.fixture
def host_key() -> HostKey:
    return machine.host_key(openssh()[0])


@pytest.fixture
def first_boot(pool: dict[str, Any], public_key: str, host_key: HostKey) -> dict[str, Any]:
    return machine.first_boot(pool, 1, "nuageinit", [public_key], host_key)
