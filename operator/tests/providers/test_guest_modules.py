# SPDX-License-Identifier: BSD-2-Clause
"""Modules are loaded before the security level keeps them out; one that comes late costs a restart of the guest."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROLE = COLLECTION / "roles" / "freebsd_guest"

_PROGRAMS = {
    "sha256": 'sha256sum <"$2"',
    "sysctl": 'cat "$WORLD/$2"',
    "kldstat": 'grep -qx "$3" "$WORLD/loaded"',
    "kldload": 'if [ "$(cat "$WORLD/kern.securelevel")" -gt 0 ] || ! grep -qx "$2" "$WORLD/installed"; then\n'
    '  echo "can\'t load $2"; exit 1\nfi\necho "$2" >>"$WORLD/loaded"',
}
"""Stand-ins for FreeBSD's programs: settings and modules are in files."""


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """Make a guest with both modules installed, accounting switched on, and the lowest security level."""
    for place in ("bin", "boot/modules", "var/run", "var/db"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "boot/modules/shai.ko").write_text("first")
    for called, text in _PROGRAMS.items():
        (tmp_path / "bin" / called).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / called).chmod(0o755)
    files = {"loaded": "", "installed": "shai\npf\n", "kern.securelevel": "-1\n", "kern.racct.enable": "1\n"}
    for called, text in files.items():
        (tmp_path / called).write_text(text)
    return tmp_path


def load(guest: Path) -> subprocess.CompletedProcess[str]:
    environment: Mapping[str, str] = {"PATH": f"{guest / 'bin'}:/usr/bin:/bin", "WORLD": str(guest)}
    script = guest / "modules.sh"
    text = (ROLE / "files" / "modules.sh").read_text()
    for place in ("/boot/modules", "/var/run", "/var/db"):
        text = text.replace(f"={place}\n", f"={guest}{place}\n")
    script.write_text(text)
    return subprocess.run(
        ["/bin/sh", script, "shai", "pf"], env=environment, capture_output=True, text=True, check=False
    )


def test_modules_are_loaded_once(guest: Path) -> None:
    assert load(guest).stdout == "loaded shai\nloaded pf\n"
    again = load(guest)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_a_module_that_comes_late_asks_for_a_restart(guest: Path) -> None:
    """With a raised level no module is loaded: the guest would go on without it for ever."""
    (guest / "loaded").write_text("pf\n")
    (guest / "kern.securelevel").write_text("1\n")
    done = load(guest)
    assert (done.returncode, done.stdout, done.stderr) == (0, "restart for shai\n", "")
    boot(guest)
    assert load(guest).stdout == "", "it is not asked for a second time"


def boot(guest: Path) -> None:
    """Start the guest anew: the loader has the modules, /var/run is empty, and the level is high."""
    for file in (guest / "var/run").iterdir():
        file.unlink()
    (guest / "loaded").write_text("shai\npf\n")
    (guest / "kern.securelevel").write_text("2\n")


def test_a_new_version_of_a_module_asks_for_one_restart(guest: Path) -> None:
    """What is loaded stays until then: the kernel takes no other one at a raised security level."""
    load(guest)
    for file in ("second", "third"):
        (guest / "boot/modules/shai.ko").write_text(file)
        assert [load(guest).stdout for _ in range(2)] == ["restart for shai\n"] * 2, "as long as there was none"
        boot(guest)
        assert [load(guest).stdout for _ in range(2)] == ["", ""]


def test_a_version_that_came_right_after_a_boot_asks_for_a_restart(guest: Path) -> None:
    """The first look after a boot comes after the installation of packages."""
    load(guest)
    boot(guest)
    (guest / "boot/modules/shai.ko").write_text("second")
    assert load(guest).stdout == "restart for shai\n"
    assert load(guest).stdout == "restart for shai\n"


def test_a_module_of_which_nothing_is_known_costs_one_restart(guest: Path) -> None:
    boot(guest)
    assert load(guest).stdout == "restart for shai\n"
    boot(guest)
    assert load(guest).stdout == ""


def test_accounting_asks_for_a_restart(guest: Path) -> None:
    (guest / "kern.racct.enable").write_text("0\n")
    assert load(guest).stdout.splitlines()[0] == "restart for kern.racct.enable"


def test_a_module_that_is_missing_is_named_with_a_remedy(guest: Path) -> None:
    (guest / "installed").write_text("pf\n")
    done = load(guest)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "EnforcementInsufficient: module shai cannot be loaded (can't load shai): install the"
    )


def test_the_security_level_rises_when_modules_are_loaded() -> None:
    """Both at once, and with the next start of the guest, for which loader.conf(5) names the modules."""
    files = [task["ansible.builtin.import_tasks"] for task in yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())]
    assert files[-1] == "securelevel.yml"
    assert files.index("packages.yml") < files.index("kernel.yml")
    names = [task["name"] for task in yaml.safe_load((ROLE / "tasks" / "kernel.yml").read_text())]
    assert names.index("Have modules loaded, and resources accounted, when the guest starts") < names.index(
        "Load modules, and find out whether the guest has to start anew"
    )


def test_the_restart_happens_once_and_is_checked() -> None:
    """Late modules are in the output that the role looks for; a guest that lacks them afterwards is not used."""
    tasks = yaml.safe_load((ROLE / "tasks" / "kernel.yml").read_text())
    block = next(task for task in tasks if task["name"] == "Start the guest anew, once")
    assert "search('restart')" in block["when"]
    assert ["ansible.builtin.reboot" in task for task in block["block"]] == [True, False, False]
    assert "is not search('restart')" in block["block"][-1]["ansible.builtin.assert"]["that"]
