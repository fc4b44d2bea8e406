# SPDX-License-Identifier: BSD-2-Clause
"""Twins of members in jails are removed without the jail, and nothing else is."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.providers.standins import ROLES, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers.standins import World

MARK = "shai pool web member web-0-b"
SERVICES = ("shai_web_0_b", "shai_store_web_0_b")


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    created.program("jls", '#!/bin/sh\ntest -e "$WORLD/running"\n')
    created.program("jexec", '#!/bin/sh\nshift\nexec "$@"\n')
    created.program(
        "service", '#!/bin/sh\ncase $2 in status) exit "${SERVED:-0}" ;; stop) exit "${STOPS:-0}" ;; esac\n'
    )
    (tmp_path / "running").touch()
    for directory in ("etc/rc.d", "etc/rc.conf.d", "web-0-b/state", "web-0/data"):
        (tmp_path / directory).mkdir(parents=True)
    for name in (*SERVICES, "shai_store"):
        (tmp_path / "etc/rc.d" / name).touch()
    (tmp_path / "etc/rc.conf.d" / SERVICES[0]).touch()
    (tmp_path / "web-0-b/.shai-member").write_text(f"{MARK}\n")
    (tmp_path / "web-0-b/data").symlink_to("../web-0/data")
    (tmp_path / "web-0/data/file").write_text("kept")
    return created


def remove(made: World, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the role."""
    (task,) = yaml.safe_load((ROLES / "freebsd_member/tasks/remove.yml").read_text())
    given = {
        "jail": "web-0",
        "directory": str(made.place / "web-0-b"),
        "mark": MARK,
        "monitor_service": SERVICES[0],
        "store_service": SERVICES[1],
    }
    words = []
    for word in task["ansible.builtin.command"]["argv"]:
        text = word.replace("/etc/rc", f"{made.place}/etc/rc")
        for name, value in given.items():
            text = text.replace(f"{{{{ freebsd_member_{name} }}}}", value)
        words.append(text)
    return subprocess.run(
        words, env=made.environment(**environment), capture_output=True, text=True, check=False, timeout=60
    )


def test_a_twin_goes_with_its_services_and_files_and_its_member_stays(made: World) -> None:
    assert remove(made).stdout == "removed\n"
    assert made.calls("service") == [f"{name} {verb}" for name in SERVICES for verb in ("status", "stop")]
    assert not (made.place / "web-0-b").exists()
    assert [file.name for file in (made.place / "etc/rc.d").iterdir()] == ["shai_store"]
    assert not list((made.place / "etc/rc.conf.d").iterdir())
    assert (made.place / "web-0/data/file").read_text() == "kept"
    assert (remove(made).returncode, remove(made).stdout) == (0, ""), "a second time there is nothing to do"


def test_a_jail_that_does_not_run_has_no_twin(made: World) -> None:
    (made.place / "running").unlink()
    done = remove(made)
    assert (done.returncode, done.stdout, made.calls("jexec")) == (0, "", [])


def test_files_of_others_stay(made: World) -> None:
    (made.place / "web-0-b/.shai-member").write_text("shai pool web member web-0\n")
    done = remove(made)
    assert (done.returncode, made.calls("service")) == (1, [])
    assert "does not carry the mark" in done.stderr
    assert (made.place / "web-0-b/state").exists()


def test_a_service_that_does_not_stop_keeps_the_mark_for_the_next_run(made: World) -> None:
    assert remove(made, STOPS="1").returncode != 0
    assert (made.place / "web-0-b/.shai-member").exists()
    assert remove(made).stdout == "removed\n"
