# SPDX-License-Identifier: BSD-2-Clause
"""Jails that do not stop, that are dying, and that leave mounts, limits and interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.standins import world

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.providers.standins import World

# The jail's state is a file: alive, stuck (its services do not end), immortal, dying or nothing.
JLS = """#!/bin/sh
state=$(cat "$WORLD/state" 2>/dev/null)
case $1 in
  -j) case $state in alive | stuck | immortal) exit 0 ;; *) exit 1 ;; esac ;;
  -d) [ -z "$state" ] || echo web-0; echo web-01 ;;
esac
"""
JAIL = """#!/bin/sh
state=$(cat "$WORLD/state")
case "$*/$state" in
  *-r*/alive) rm "$WORLD/state" ;;
  *-R*/stuck) rm "$WORLD/state" ;;
  *-R*/alive) echo dying >"$WORLD/state" ;;
  *) exit 1 ;;
esac
"""
MOUNT = '#!/bin/sh\ncat "$WORLD/mounts" 2>/dev/null\nexit 0\n'
UMOUNT = '#!/bin/sh\nsed -i "\\\\| $2 |d" "$WORLD/mounts"\n'


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    for name, text in {"jls": JLS, "jail": JAIL, "mount": MOUNT, "umount": UMOUNT, "rctl": "#!/bin/sh\n"}.items():
        created.program(name, text)
    (tmp_path / "web-0.conf").write_text(
        f'# mark\n"web-0" {{\n  path = "{tmp_path}/jails/web-0";\n  vnet.interface = "sh0123b";\n}}\n'
    )
    created.script("jail", "epair.sh")
    return created


def stop(made: World) -> subprocess.CompletedProcess[str]:
    return made.run(made.script("jail", "stop.sh"), "web-0", str(made.place / "web-0.conf"), "60")


def test_a_jail_stops(made: World) -> None:
    (made.place / "state").write_text("alive")
    assert stop(made).stdout == "stopped web-0\n"
    assert stop(made).stdout == ""


def test_a_jail_that_does_not_stop_is_killed_and_what_it_left_goes(made: World) -> None:
    (made.place / "state").write_text("stuck")
    root = made.place / "jails/web-0"
    other = f"base {made.place}/jails/web-01/usr nullfs ro 0 0\n"
    (made.place / "mounts").write_text(f"base {root}/usr nullfs ro 0 0\ndevfs {root}/dev devfs rw 0 0\n{other}")
    made.interface("sh0123a", "groups: epair", "description: shai jail web-0")
    done = stop(made)
    assert done.returncode == 0
    assert "killing the processes of web-0" in done.stdout
    assert "stopped web-0" in done.stdout
    assert (made.place / "mounts").read_text() == other
    assert made.calls("rctl") == ["-r jail:web-0"]
    assert not (made.place / "interfaces/sh0123a").exists()


def test_a_jail_that_cannot_be_killed_is_a_failure(made: World) -> None:
    (made.place / "state").write_text("immortal")
    (made.place / "mounts").write_text(f"base {made.place}/jails/web-0/usr nullfs ro 0 0\n")
    done = stop(made)
    assert done.returncode == 1
    assert done.stderr.startswith("JailStuck: jail web-0 does not stop")
    assert (made.place / "mounts").read_text() != "", "what still lives keeps its files"


def test_a_dying_jail_holds_up_nothing(made: World) -> None:
    """It has no process any more, and another jail can have its name; what it left is taken away."""
    (made.place / "state").write_text("dying")
    (made.place / "mounts").write_text(f"base {made.place}/jails/web-0/usr nullfs ro 0 0\n")
    assert stop(made).returncode == 0
    assert (made.place / "mounts").read_text() == ""


def test_a_file_system_that_stays_is_a_failure(made: World) -> None:
    made.program("umount", "#!/bin/sh\nexit 1\n")
    (made.place / "mounts").write_text(f"base {made.place}/jails/web-0/usr nullfs ro 0 0\n")
    done = stop(made)
    assert done.returncode == 1
    assert done.stderr.startswith(f"JailStuck: {made.place}/jails/web-0/usr of jail web-0 cannot be unmounted")


def test_files_below_a_mount_are_not_deleted(made: World) -> None:
    """Deleting would go on into what is mounted."""
    root = made.place / "jails/web-0"
    (root / "usr").mkdir(parents=True)
    (made.place / "mounts").write_text(f"base {root}/usr nullfs ro 0 0\n")
    script = made.script("jail", "delete.sh")
    done = made.run(script, "web-0", str(made.place / "jails"), "")
    assert done.returncode == 1
    assert "still mounted" in done.stderr
    assert (root / "usr").exists()
    (made.place / "mounts").write_text("")
    assert made.run(script, "web-0", str(made.place / "jails"), "").returncode == 0
    assert not root.exists()


def test_a_busy_dataset_of_a_jail_is_named(made: World) -> None:
    made.program("zfs", '#!/bin/sh\n[ "$1" = list ] || { echo "dataset is busy" >&2; exit 1; }\n')
    done = made.run(made.script("jail", "delete.sh"), "web-0", str(made.place / "jails"), "tank/jails")
    assert done.returncode == 1
    assert "dataset tank/jails/web-0 is busy: end the processes" in done.stderr
