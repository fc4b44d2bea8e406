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
MEMBERS = ("linux_member", "freebsd_member")
JEXEC = '#!/bin/sh\nshift\nexec "$@"\n'


@pytest.mark.parametrize("role", MEMBERS)
def test_a_path_in_the_image_stays_there(tmp_path: Path, role: str) -> None:
    good = ("", "/srv/corpus", "$(IMAGE)/corpus", "$(IMAGE)/..corpus/a..b")
    bad = ("$(IMAGE)/../other", "$(IMAGE)/corpus/..", "$(IMAGE)", "$(IMAGE)s/corpus", "$(DATA)/corpus")
    tests = [(field, given) for field in ("data_source", "key_value_seed") for given in (*good, *bad)]
    check = (role, "sources.yml", "Check the paths in the image")
    results = checked(tmp_path, check, [{f"{role}_{field}": given} for field, given in tests])
    for (_, given), (passed, printed) in zip(tests, results, strict=True):
        assert passed is (given in good), printed
        assert passed or f"{given} is no path in the member's image: expected $(IMAGE)/ and a path" in printed


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    created.program("jexec", JEXEC)
    corpus = tmp_path / "images" / DIGEST / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "mail.txt").write_text("of the image")
    (tmp_path / "pool/web-0").mkdir(parents=True)
    (tmp_path / "pool/images").symlink_to(tmp_path / "images")
    (tmp_path / "ansible_collections/shai").mkdir(parents=True)
    (tmp_path / "ansible_collections/shai/pools").symlink_to(COLLECTION)
    return created


def play(made: World, role: str, tasks: list[dict[str, Any]], **given: Any) -> tuple[int, str]:
    """Run tasks with the role's variables; a jail is this machine. Return the status, and what is printed."""
    common = {
        "jail": "web-0",
        "name": "web-0",
        "pool_directory": str(made.place / "pool"),
        "images": str(made.place / "images"),
        "image_digest": DIGEST,
        **given,
    }
    variables = {f"{role}_{name}": value for name, value in common.items()}
    files = [str(ROLES / role / folder / "main.yml") for folder in ("defaults", "vars")]
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


def seed_data(made: World, role: str, source: str, **given: Any) -> tuple[int, str]:
    """Give the member its data."""
    include = {"ansible.builtin.include_role": {"name": role, "tasks_from": "data.yml"}}
    return play(made, role, [include], data_source=source, **given)


def seed_store(made: World, role: str, file: str, source: str) -> tuple[int, str]:
    """Load the seed of the member's store."""
    tasks = yaml.safe_load((ROLES / role / "tasks" / file).read_text())
    while not any("shai.pools.store_seed" in task for task in tasks):
        tasks = [task for block in tasks for task in block.get("block", ())]
    load = next(task for task in tasks if "shai.pools.store_seed" in task)
    return play(made, role, [load], key_value=True, key_value_open="abc", key_value_seed=source)


@pytest.mark.parametrize("role", MEMBERS)
def test_a_members_data_come_from_the_image(made: World, role: str) -> None:
    status, said = seed_data(made, role, "$(IMAGE)/corpus")
    assert status == 0, said
    assert (made.place / "pool/web-0/data/mail.txt").read_text() == "of the image"


@pytest.mark.parametrize(
    ("role", "machine"), [("linux_member", "on this host"), ("freebsd_member", "in this virtual machine")]
)
def test_data_that_the_machine_lacks_are_named_with_a_remedy(made: World, role: str, machine: str) -> None:
    status, said = seed_data(made, role, "/srv/no/corpus")
    assert status != 0
    assert f"data source /srv/no/corpus is not a directory {machine}" in said
    assert "$(IMAGE)/PATH" in said


@pytest.mark.parametrize(
    ("role", "links"), [("linux_member", False), ("linux_member", True), ("freebsd_member", False)]
)
@pytest.mark.parametrize("through", ["", "$(IMAGE)/"])
def test_of_a_link_its_directory_is_copied(made: World, role: str, links: bool, through: str) -> None:  # noqa: FBT001
    """A copy of the link would let the member's tasks write into the source."""
    image = made.place / "images" / DIGEST
    (image / "latest").symlink_to("corpus")
    mode = {"data_link": True} if links else {}
    status, said = seed_data(made, role, f"{through or f'{image}/'}latest", **mode)
    assert status == 0, said
    data = made.place / "pool/web-0/data"
    assert data.is_dir()
    assert not data.is_symlink()
    (data / "new.txt").touch()
    assert [file.name for file in (image / "corpus").iterdir()] == ["mail.txt"]
    assert (data / "mail.txt").samefile(image / "corpus/mail.txt") is links


@pytest.mark.parametrize("role", MEMBERS)
@pytest.mark.parametrize("below", ["out", "out/private"])
def test_a_link_leads_no_data_out_of_the_image(made: World, role: str, below: str) -> None:
    (made.place / "host/private").mkdir(parents=True)
    (made.place / "images" / DIGEST / "out").symlink_to(made.place / "host")
    status, said = seed_data(made, role, f"$(IMAGE)/{below}")
    assert status != 0
    assert f"{below} leads out of the image, through a symbolic link to {made.place}/host" in said
    assert "put the data themselves into" in said
    assert not (made.place / "pool/web-0/data").exists()


def test_data_that_are_a_link_are_refused(made: World) -> None:
    """An earlier version may have made it."""
    corpus = made.place / "images" / DIGEST / "corpus"
    (made.place / "pool/web-0/data").symlink_to(corpus)
    for source in (str(corpus), ""):
        status, said = seed_data(made, "linux_member", source)
        assert status != 0
        assert f"pool/web-0/data is no directory but a symbolic link to {corpus}, which the member's tasks" in said
    status, said = seed_data(made, "linux_member", str(corpus), data_share=True)
    assert status == 0, said


@pytest.mark.parametrize(
    ("role", "file", "machine"),
    [("linux_member", "main.yml", "on this host"), ("freebsd_member", "store.yml", "in this virtual machine")],
)
def test_a_stores_seed_comes_from_the_image(made: World, role: str, file: str, machine: str) -> None:
    made.program(
        "redis-cli", '#!/bin/sh\n[ "$3" != --pipe ] || { cat >"$WORLD/sent"; echo "errors: 0, replies: 1"; }\n'
    )
    status, said = seed_store(made, role, file, "$(IMAGE)/profiles.resp")
    assert status != 0
    assert f"profiles.resp is not a file {machine}: put it into the members' image" in said
    image = made.place / "images" / DIGEST
    (made.place / "passwords").write_text("SET a b\n")
    (image / "profiles.resp").symlink_to(made.place / "passwords")
    (made.place / "pool/web-0/keyvalue").mkdir()
    status, said = seed_store(made, role, file, "$(IMAGE)/profiles.resp")
    assert (status != 0, (made.place / "sent").exists()) == (True, False), said
    assert f"profiles.resp leads out of the image, through a symbolic link to {made.place}/passwords" in said
    (image / "profiles.resp").unlink()
    (image / "new.resp").write_text("SET a b\n")
    (image / "profiles.resp").symlink_to("new.resp")
    status, said = seed_store(made, role, file, "$(IMAGE)/profiles.resp")
    assert status == 0, said
    assert (made.place / "sent").read_text() == "SET a b\n"
