# SPDX-License-Identifier: BSD-2-Clause
"""A guest's root file system grows once with its disk, when the guest starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.providers.standins import ROLES, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers.standins import World

RC_SUBR = 'load_rc_config() { :; }\nrun_rc_command() { eval "\\$${1}_cmd"; }\n'


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    (tmp_path / "etc/rc.subr").write_text(RC_SUBR)
    (tmp_path / "var/db").mkdir()
    created.program("sysctl", '#!/bin/sh\ncase $2 in kern.disks) echo "vtbd0 cd0" ;; *) cat "$WORLD/level" ;; esac\n')
    created.program("diskinfo", '#!/bin/sh\nprintf "%s\\t512\\t%s\\t0\\n" "$1" "$(cat "$WORLD/disk")"\n')
    created.program("df", '#!/bin/sh\necho heading\necho "/dev/vtbd0p4 $(cat "$WORLD/root") 0 0 0% /"\n')
    created.program("service", '#!/bin/sh\necho Growing root partition\ncat "$WORLD/disk" >"$WORLD/root"\n')
    for name, text in {"level": "-1", "disk": "1000", "root": "1000"}.items():
        (tmp_path / name).write_text(f"{text}\n")
    return created


def start(made: World) -> str:
    script = made.script("freebsd_guest", "shai_grow.sh")
    script.write_text(script.read_text().replace("/var/db", f"{made.place}/var/db"))
    done = made.run(script, "start")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_system_grows_once_with_the_disk(made: World) -> None:
    assert start(made) == "", "it has grown at the first boot"
    (made.place / "disk").write_text("2000\n")
    assert start(made) == "grown to 2000 KiB\n"
    assert start(made) == ""
    assert made.calls("service") == ["growfs onestart"] * 2


def test_a_raised_security_level_leaves_it_to_the_next_start(made: World) -> None:
    """The kernel would refuse to write to the disk."""
    start(made)
    (made.place / "disk").write_text("2000\n")
    (made.place / "level").write_text("2\n")
    assert start(made) == ""
    (made.place / "level").write_text("-1\n")
    assert start(made) == "grown to 2000 KiB\n"


def test_it_comes_before_the_security_level() -> None:
    text = (ROLES / "freebsd_guest/files/shai_grow.sh").read_text()
    assert "# BEFORE: securelevel\n" in text


@pytest.mark.parametrize(
    ("started", "conf", "stops"),
    [("4", "cpus=2", False), (None, "cpus=2", False), ("3", "cpus=2", True), ("4", "cpus=1", True)],
)
def test_a_machine_with_a_larger_disk_is_restarted(
    made: World,
    started: str | None,
    conf: str,
    stops: bool,  # noqa: FBT001
) -> None:
    tasks = yaml.safe_load((ROLES / "pool_vm/tasks/run.yml").read_text())
    (task,) = [task for task in tasks if task["name"].startswith("Stop a machine")]
    place = made.place / "vm"
    place.mkdir()
    (place / "disk.img").write_text("disk")
    (place / "bhyve.conf").write_text("cpus=2")
    (place / "bhyve.conf.started").write_text(conf)
    if started is not None:
        (place / "disk.started").write_text(f"{started}\n")
    made.program("service", "#!/bin/sh\n")
    (made.place / "stop.sh").write_text(f"cd {place}\n{task['ansible.builtin.shell']['cmd']}")
    done = made.run(made.place / "stop.sh", NAME="web-vm-0")
    assert (done.returncode, done.stdout) == (0, "stopped\n" if stops else "")
