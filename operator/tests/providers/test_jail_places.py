# SPDX-License-Identifier: BSD-2-Clause
"""Places of mounts in a jail's files: nothing is made where the jail's links lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.standins import world

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.providers.standins import World


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    created.program("jls", '#!/bin/sh\ntest -e "$WORLD/running"\n')
    # What runs in the jail has its own root.
    created.program("jexec", '#!/bin/sh\n[ "$5 $#" = "$WANTED 5" ] || [ "$6" = "$WANTED" ] && echo "made $WANTED"\n')
    (tmp_path / "jails/web-0/var").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return created


def place(made: World, path: str = "/var/lib/shai/images") -> subprocess.CompletedProcess[str]:
    return made.run(made.script("jail", "place.sh"), "web-0", str(made.place / "jails/web-0"), path, WANTED=path)


def test_a_place_is_made_once(made: World) -> None:
    assert place(made).stdout == "made /var/lib/shai/images\n"
    assert (made.place / "jails/web-0/var/lib/shai/images").is_dir()
    assert (place(made).returncode, place(made).stdout) == (0, "")


@pytest.mark.parametrize("link", ["var/lib", "var/lib/shai", "var/lib/shai/images"])
def test_a_link_of_the_jail_leads_nowhere(made: World, link: str) -> None:
    file = made.place / "jails/web-0" / link
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(made.place / "outside")
    done = place(made)
    assert done.returncode == 1
    assert f"{file} is a link or leads upwards" in done.stderr
    assert list((made.place / "outside").iterdir()) == []


def test_nothing_is_made_above_the_root(made: World) -> None:
    assert place(made, "/var/../../evil").returncode == 1
    assert not (made.place / "jails/evil").exists()


def test_a_jail_that_runs_makes_it_itself(made: World) -> None:
    (made.place / "running").touch()
    (made.place / "jails/web-0/var/lib").symlink_to(made.place / "outside")
    assert place(made).stdout == "made /var/lib/shai/images\n"
    assert made.calls("jexec")[0].startswith("web-0 /bin/sh -c ")
    assert list((made.place / "outside").iterdir()) == []
