# SPDX-License-Identifier: BSD-2-Clause
"""What new members are filled with: paths on their machine, and paths in the image, from which nothing leads out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.providers.process import COLLECTION
from tests.providers.standins import ROLES, world
from tests.providers.test_role_checks import checked

if TYPE_CHECKING:
    from tests.providers.standins import World

DIGEST = "ab" * 32
JEXEC = '#!/bin/sh\nshift\nexec "$@"\n'


@pytest.mark.parametrize("role", ["linux_member", "freebsd_member"])
@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ("", True),
        ("/srv/corpus", True),
        ("$(IMAGE)/corpus", True),
        ("$(IMAGE)/..corpus/a..b", True),
        ("$(IMAGE)/../other", False),
        ("$(IMAGE)/corpus/..", False),
        ("$(IMAGE)", False),
        ("$(IMAGE)s/corpus", False),
        ("$(DATA)/corpus", False),
    ],
)
def test_a_path_in_the_image_stays_there(tmp_path: Path, role: str, given: str, passes: bool) -> None:  # noqa: FBT001
    check = (role, "sources.yml", "Check the paths in the image")
    for field in ("data_source", "key_value_seed"):
        passed, printed = checked(tmp_path, check, **{f"{role}_{field}": given})
        assert passed is passes, printed
        assert passes or f"{given} is no path in the member's image: expected $(IMAGE)/ and a path" in printed


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    created.program("jexec", JEXEC)
    corpus = tmp_path / "images" / DIGEST / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "mail.txt").write_text("of the image")
    (tmp_path / "pool/web-0").mkdir(parents=True)
    (tmp_path / "ansible_collections/shai").mkdir(parents=True)
    (tmp_path / "ansible_collections/shai/pools").symlink_to(COLLECTION)
    return created


def play(made: World, tasks: list[dict[str, Any]], **given: str) -> tuple[int, str]:
    """Run tasks with the role's variables; the jail is this machine. Return the status, and what is printed."""
    variables = {
        "freebsd_member_jail": "web-0",
        "freebsd_member_name": "web-0",
        "freebsd_member_pool_directory": str(made.place / "pool"),
        "freebsd_member_images": str(made.place / "images"),
        "freebsd_member_image_digest": DIGEST,
        **given,
    }
    files = [str(ROLES / "freebsd_member" / folder / "main.yml") for folder in ("defaults", "vars")]
    file = made.place / "play.yml"
    file.write_text(
        json.dumps([{
            "hosts": "localhost", "connection": "local", "gather_facts": False, "vars_files": files, "tasks": tasks,
            "vars": {"ansible_python_interpreter": sys.executable},
        }])
    )  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory=localhost,",
         "--extra-vars", json.dumps(variables), file],
        env={**os.environ, **made.environment(), "ANSIBLE_HOME": str(made.place), "NO_COLOR": "1",
             "ANSIBLE_ROLES_PATH": str(ROLES), "ANSIBLE_COLLECTIONS_PATH": str(made.place)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, " ".join(done.stdout.split())


SEED_DATA = [{"ansible.builtin.include_role": {"name": "freebsd_member", "tasks_from": "data.yml"}}]


def test_a_jails_data_come_from_the_image(made: World) -> None:
    status, said = play(made, SEED_DATA, freebsd_member_data_source="$(IMAGE)/corpus")
    assert status == 0, said
    assert (made.place / "pool/web-0/data/mail.txt").read_text() == "of the image"


def test_data_that_the_virtual_machine_lacks_are_named_with_a_remedy(made: World) -> None:
    status, said = play(made, SEED_DATA, freebsd_member_data_source="/srv/corpus")
    assert status != 0
    assert "/srv/corpus is not a directory in this virtual machine: put the data into the members' image" in said
    assert "$(IMAGE)/PATH" in said


def test_a_stores_seed_comes_from_the_image(made: World) -> None:
    tasks = yaml.safe_load((ROLES / "freebsd_member/tasks/store.yml").read_text())
    load = [next(task for task in tasks if "shai.pools.store_seed" in task)]
    made.program(
        "redis-cli", '#!/bin/sh\n[ "$3" != --pipe ] || { cat >"$WORLD/sent"; echo "errors: 0, replies: 1"; }\n'
    )
    status, said = play(made, load, freebsd_member_key_value_seed="$(IMAGE)/profiles.resp")
    assert status != 0
    assert "profiles.resp is not a file in this virtual machine: put it into the members' image" in said
    (made.place / "images" / DIGEST / "profiles.resp").write_text("SET a b\n")
    (made.place / "pool/web-0/keyvalue").mkdir()
    status, said = play(made, load, freebsd_member_key_value_seed="$(IMAGE)/profiles.resp")
    assert status == 0, said
    assert (made.place / "sent").read_text() == "SET a b\n"
