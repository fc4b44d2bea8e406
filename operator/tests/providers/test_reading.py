# SPDX-License-Identifier: BSD-2-Clause
"""Files of a member's data are copied for a measurement: those that are asked for, and nothing that they lead to."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from loadgen.datasets.files import LONGEST_BYTES
from shai_operator.providers.interface import Grounds
from shai_operator.providers.local import LocalProvider, local_host
from shai_operator.providers.playbooks import Playbooks
from tests.providers.support import quiet

if TYPE_CHECKING:
    from tests.providers.conftest import Site

ROLES = Path(__file__).resolve().parents[3] / "ansible" / "roles"


@pytest.mark.parametrize("role", ["linux_member", "freebsd_member"])
def test_what_is_copied_may_be_as_long_as_what_is_read_where_it_is(role: str) -> None:
    defaults = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
    assert defaults[f"{role}_read_bytes"] == LONGEST_BYTES


async def test_files_are_copied_and_links_are_not_followed(site: Site, tmp_path: Path) -> None:
    playbooks = Playbooks(directory=site.base / "runs")
    provider = LocalProvider(playbooks, site.authority)
    (member,) = provider.place(site.pool, [0], {}).members
    data = site.directory / member.name / "data"
    (data / "facts").mkdir(parents=True)
    (data / "keys.jsonl").write_text("{{ 1 + 1 }} ünïcode\n")
    (data / "facts" / "population.jsonl").write_text("x" * 3_000_000)
    secret = tmp_path / "secret"
    secret.write_text("of somebody else")
    (data / "queries.txt").symlink_to(secret)
    (data / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(data / "waiting")
    copies = data.parent / "copies"  # of a run that was ended
    copies.mkdir()
    (copies / "0").write_text("old")
    with (data / "dataset.json").open("wb") as endless:  # a task of the pipeline may make its files as long as it likes
        endless.truncate(300 << 20)
    files = ["keys.jsonl", "queries.txt", "facts/population.jsonl", "dataset.json"]
    files += ["elsewhere/secret", "waiting", "facts", "missing/file", "facts/../keys.jsonl"]
    outcome = await provider.read(
        local_host(),
        member,
        Grounds("t", str(site.directory)),
        files,
        tmp_path / "read",
        progress=quiet,
        cancel=asyncio.Event(),
    )
    await playbooks.close()
    assert outcome.failure is None
    read = tmp_path / "read"
    assert (read / "keys.jsonl").read_text() == "{{ 1 + 1 }} ünïcode\n"
    assert (read / "facts" / "population.jsonl").stat().st_size == 3_000_000
    assert sorted(path.name for path in read.rglob("*") if path.is_file()) == ["keys.jsonl", "population.jsonl"]
    assert [path.name for path in data.parent.iterdir()] == ["data"], "copies are left"
