# SPDX-License-Identifier: BSD-2-Clause
"""A guest is left alone until its first boot is over, and not for ever."""

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


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """Make a guest in which a second passes at once, and takes a line off the file ``boots``."""
    (tmp_path / "bin").mkdir()
    sleep = tmp_path / "bin" / "sleep"
    sleep.write_text(f"#!/bin/sh\ncd {tmp_path}\nsed -i 1d boots\n[ -s boots ] || rm -f firstboot\n")
    sleep.chmod(0o755)
    return tmp_path


def wait(guest: Path, seconds: int) -> int:
    task = next(task for task in yaml.safe_load(TASKS.read_text()) if task["name"].startswith("Wait until"))
    command = Template(task["ansible.builtin.raw"]).render(freebsd_guest_first_boot_seconds=seconds)
    here = command.replace("/firstboot", str(guest / "firstboot"))
    path = {"PATH": f"{guest / 'bin'}:/usr/bin:/bin"}
    return subprocess.run(["/bin/sh", "-c", here], env=path, check=False).returncode


def test_a_guest_that_has_booted_is_not_waited_for(guest: Path) -> None:
    assert wait(guest, 0) == 0


def test_the_end_of_the_first_boot_is_waited_for(guest: Path) -> None:
    (guest / "firstboot").touch()
    (guest / "boots").write_text("second\n" * 3)
    assert wait(guest, 3) == 0
    assert not (guest / "firstboot").exists()


def test_a_first_boot_that_does_not_end_is_given_up(guest: Path) -> None:
    (guest / "firstboot").touch()
    (guest / "boots").write_text("second\n" * 4)
    assert wait(guest, 3) == 1
    assert (guest / "boots").read_text() == "second\n"
