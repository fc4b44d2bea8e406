# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time of verifying one login, with the library that the front end and the supervisor use."""

from __future__ import annotations

import ctypes
import ctypes.util
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loadgen.errors import LoadgenError

_BATCHES, _BATCH = 21, 50
_TEXT = b"x" * 160  # about as long as a signed text


class SodiumError(LoadgenError):
    """libsodium is missing or does not verify; the text says what to do."""


def verification_micros() -> list[float]:
    """Return the time of a verification in microseconds of CPU, once for each of several batches."""
    name = ctypes.util.find_library("sodium")
    if name is None:
        raise SodiumError("libsodium is not installed: run `make setup`, which installs libsodium-dev")
    sodium = ctypes.CDLL(name)
    key = Ed25519PrivateKey.generate()
    signature, public = key.sign(_TEXT), key.public_key().public_bytes_raw()
    if sodium.sodium_init() < 0:
        raise SodiumError(f"{name} cannot be initialised")
    return [_batch(sodium, signature, public) for _ in range(_BATCHES)]


def _batch(sodium: ctypes.CDLL, signature: bytes, public: bytes) -> float:
    size = ctypes.c_ulonglong(len(_TEXT))
    before = time.thread_time_ns()
    refused = sum(sodium.crypto_sign_verify_detached(signature, _TEXT, size, public) != 0 for _ in range(_BATCH))
    elapsed = time.thread_time_ns() - before
    if refused:
        raise SodiumError("libsodium refuses a signature that was just made")
    return elapsed / _BATCH / 1000
