# SPDX-License-Identifier: BSD-2-Clause
"""The messages about a machine or a checkout that is not ready."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import pytest

from demo import machine
from demo.workspace import Workspace, WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

BUILT = ("bin/shai", "bin/devcluster", "images/default", "syse/syse.jar")


def doctor(path: Path, status: int, answer: str) -> Path:
    """Make a program with the output of `shai doctor`."""
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("missing", ["", *BUILT])
def test_what_is_not_built_is_named_with_the_remedy(tmp_path: Path, missing: str) -> None:
    for name in BUILT:
        if name != missing:
            (tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "build" / name).touch()
    place = Workspace(tmp_path, tmp_path / "out", "smoke")
    if not missing:
        place.prepare()
        assert place.data.is_dir()
        return
    with pytest.raises(WorkspaceError, match=rf"build/{missing} is missing: run `make build`"):
        place.prepare()


def test_a_second_demo_is_refused(tmp_path: Path) -> None:
    place = Workspace(tmp_path, tmp_path / "out", "smoke")
    with place.lock(), pytest.raises(WorkspaceError, match="another demo is running in"), place.lock():
        pass
    with place.lock():
        pass


def test_a_kernel_without_landlock_is_named_as_the_doctor_does(tmp_path: Path) -> None:
    answer = {
        "features": [
            {"name": "seccomp", "found": "present", "needed": "Linux 5.14", "present": True},
            {"name": "Landlock", "found": "not active", "needed": "ABI 4 (Linux 6.7)", "present": False},
        ]
    }
    machine.check_enforcement(doctor(tmp_path / "ok", 0, json.dumps(answer)))
    with pytest.raises(machine.MachineError) as caught:
        machine.check_enforcement(doctor(tmp_path / "shai", 1, json.dumps(answer)))
    assert "cannot confine tasks: Landlock is not active, needed: ABI 4 (Linux 6.7)." in str(caught.value)
    assert f"`{tmp_path / 'shai'} doctor` says more" in str(caught.value)
    assert "seccomp" not in str(caught.value)


def test_a_doctor_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(machine.MachineError, match="doctor` failed: out of order"):
        machine.check_enforcement(doctor(tmp_path / "shai", 1, "out of order"))


def test_a_taken_port_is_named_with_what_finds_its_owner() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(machine.MachineError, match=rf"cannot listen on 127.0.0.1:{port}: .*sport = :{port}"):
            machine.check_ports([("127.0.0.1", port)])
    machine.check_ports([("127.0.0.1", port)])


@pytest.mark.parametrize("user", [0, 1000])
def test_only_root_can_run_it(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if user == 0:
        machine.check_root()
        return
    with pytest.raises(machine.MachineError, match=r"needs root: .*sudo env .* make demo"):
        machine.check_root()
