# SPDX-License-Identifier: BSD-2-Clause
"""Installations of another version of Sys-E."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.datasets.population import Person, Population
from loadgen.driving.protocol import ProtocolError
from loadgen.measuring.installations import set_signed
from loadgen.measuring.place import revision
from loadgen.stacks.monitor import Monitor
from loadgen.stacks.stack import Stack
from loadgen.tests.fake_syse import SIGNED, FakeSysE
from loadgen.tests.harness import ROOT


def stack_of(server: FakeSysE) -> Stack:
    return Stack(Monitor(Path("/nowhere"), Path("/nowhere")), "syse", server.front_end.address, "shai")


@pytest.mark.parametrize("signed", [SIGNED, "shai-session-v1\n{user}\n{nonce}"])
def test_what_a_login_signs_is_found_out(people: Population, signed: str) -> None:
    with FakeSysE(people, signed=signed) as server:
        stack = stack_of(server)
        set_signed(stack, people["alice"])
        assert stack.front_end.signed == signed
        assert server.logins == ["alice"]


def test_a_person_whom_no_text_logs_in_is_an_error(people: Population) -> None:
    with FakeSysE(people) as server, pytest.raises(ProtocolError, match="got 403"):
        set_signed(stack_of(server), Person("alice", bytes(32), "us"))


def test_a_checkout_is_named_by_its_commit_and_another_directory_by_its_path(tmp_path: Path) -> None:
    assert re.fullmatch("[0-9a-f]{7,40}(-dirty)?", revision(ROOT))
    assert revision(tmp_path) == str(tmp_path)
