# SPDX-License-Identifier: BSD-2-Clause
"""Who may log in to a guest: the keys that are given, and no others; never nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.providers.standins import ROLES

FIRST = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl operator"
SECOND = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJPBk2ydBKWbuc3pzbgO1JOg3qV2XRp8vAbEkYsF1Z9y {{ 7 * 7 }}"


def give(place: Path, keys: list[str]) -> str:
    """Run the role's tasks of login that write; return the output."""
    role = ROLES / "freebsd_guest"
    tasks = yaml.safe_load((role / "tasks/login.yml").read_text())[:2]
    play = {
        "hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks,
        "vars_files": [str(role / "vars/main.yml"), "given.json"],
        "vars": {"ansible_python_interpreter": sys.executable},
    }  # fmt: skip
    (place / "play.yml").write_text(json.dumps([play]))
    given = [{"__ansible_unsafe": key} for key in keys]
    inventory = {"all": {"hosts": {"localhost": {"freebsd_guest_authorized_keys": given}}}}
    (place / "inventory.json").write_text(json.dumps(inventory))
    (place / "given.json").write_text(json.dumps({"freebsd_guest_ssh_directory": str(place / "ssh")}))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory", place / "inventory.json", place / "play.yml"],
        env={**os.environ, "ANSIBLE_HOME": str(place), "NO_COLOR": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def test_a_guest_has_the_keys_that_are_given_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "ssh/authorized_keys"
    file.parent.mkdir()
    file.write_text(f"{FIRST}\nssh-ed25519 AAAA of-somebody-who-left\n")
    assert "failed=0" in (said := give(tmp_path, [FIRST, SECOND])), said
    assert file.read_text() == f"{FIRST}\n{SECOND}\n"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "changed=0" in give(tmp_path, [FIRST, SECOND])


@pytest.mark.parametrize("keys", [[], ["no key"]])
def test_nobody_is_locked_out(tmp_path: Path, keys: list[str]) -> None:
    file = tmp_path / "ssh/authorized_keys"
    file.parent.mkdir()
    file.write_text(f"{FIRST}\n")
    give(tmp_path, keys)
    assert file.read_text() == f"{FIRST}\n"
