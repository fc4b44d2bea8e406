# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's settings in a guest are applied once, also those of which the kernel makes another value."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from pathlib import Path

ROLE = COLLECTION / "roles" / "freebsd_guest"
SETTINGS = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())["freebsd_guest_own_sysctls"]

# FreeBSD's kernel (sysctl_kern_randompid) takes 1 for a number of its choice, and other small numbers for 100.
SYSCTL = """#!/bin/sh
if [ "$1" = -n ]; then cat "$PLACE/$2"; exit; fi
name=${1%=*} value=${1#*=}
[ "$name $value" != "kern.randompid 1" ] || value=719
[ "$name" != kern.randompid ] || [ "$value" -ge 100 ] || value=100
echo "$name: $(cat "$PLACE/$name") -> $value"
echo "$value" >"$PLACE/$name"
"""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_applied_once(tmp_path: Path, name: str) -> None:
    program = tmp_path / "sysctl"
    program.write_text(SYSCTL)
    program.chmod(0o755)
    (tmp_path / name).write_text("-1\n")
    tasks = yaml.safe_load((ROLE / "tasks" / "kernel.yml").read_text())
    (command,) = [task["ansible.builtin.shell"]["cmd"] for task in tasks if task["name"].startswith("Apply the kernel")]
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "PLACE": str(tmp_path), "NAME": name, "VALUE": str(SETTINGS[name])
    }  # fmt: skip

    def apply() -> str:
        done = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert apply() == f"{name}: -1 -> {SETTINGS[name]}\n"
    assert apply() == ""


def test_the_packet_filter_sees_a_packet_on_members_of_the_bridge_only() -> None:
    assert (SETTINGS["net.link.bridge.pfil_member"], SETTINGS["net.link.bridge.pfil_bridge"]) == (1, 0), (
        "its rules name members, and a SYN that is counted twice has a window that is taken for a scaled one"
    )
