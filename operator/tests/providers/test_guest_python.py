# SPDX-License-Identifier: BSD-2-Clause
"""Python comes into a guest without a question that nobody answers, and not by waiting for ever."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from jinja2 import Template

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from pathlib import Path

TASKS = COLLECTION / "roles" / "freebsd_guest" / "tasks" / "bootstrap.yml"
_MEANT = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"


@pytest.fixture
def command(tmp_path: Path) -> str:
    """Return the role's command, for a guest whose pkg(8) is in this directory."""
    task = next(task for task in yaml.safe_load(TASKS.read_text()) if task["name"].startswith("Install the package"))
    text: str = Template(task["ansible.builtin.raw"]).render(freebsd_guest_bootstrap_seconds=1)
    assert _MEANT in text
    return text.replace(_MEANT, f"{tmp_path}:/usr/bin:/bin")


def run(tmp_path: Path, command: str, package_manager: str) -> subprocess.CompletedProcess[bytes]:
    """Run it as over SSH, whose connection stays open without sending anything."""
    program = tmp_path / "pkg"
    program.write_text(f"#!/bin/sh\n{package_manager}\n")
    program.chmod(0o755)
    with subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE) as connection:
        try:
            return subprocess.run(["/bin/sh", "-c", command], stdin=connection.stdout, check=False, capture_output=True)
        finally:
            connection.kill()


def test_it_is_installed_after_the_package_manager(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, "echo $*")
    assert (done.returncode, done.stdout) == (0, b"bootstrap\ninstall python3\n")


def test_questions_are_answered(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command, '[ "$ASSUME_ALWAYS_YES" = yes ]').returncode == 0


def test_a_question_that_is_asked_all_the_same_gets_no_answer(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command, "read -r answer || exit 3").returncode == 3


def test_a_mirror_that_does_not_answer_is_given_up(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command, "exec sleep 1000").returncode == 124


def test_what_failed_is_said_with_a_remedy() -> None:
    check = next(
        task for task in yaml.safe_load(TASKS.read_text()) if task["name"] == "Check that Python was installed"
    )
    message = Template(check["ansible.builtin.assert"]["fail_msg"]).render(
        freebsd_guest_bootstrapped={"rc": 124, "stdout": "pkg: no mirror\n"}, freebsd_guest_bootstrap_seconds=600
    )
    assert message.startswith("GuestUnreachable: Python cannot be installed in the guest (status 124,")
    assert "pkg: no mirror" in message
    assert "Check that the guest reaches a package mirror" in message
