# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import ctypes.util

import pytest

from loadgen.measuring import ed25519


def test_each_batch_has_a_time() -> None:
    found = ed25519.verification_micros()
    assert len(found) > 10
    assert min(found) > 0


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda _name: None)
    with pytest.raises(ed25519.SodiumError, match="run `make setup`"):
        ed25519.verification_micros()
