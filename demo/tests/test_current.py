# SPDX-License-Identifier: BSD-2-Clause
"""Load that is started by hand finds the demo while it runs, and not afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo import current
from demo.workspace import Workspace
from loadgen.driving.discovery import Discovery
from loadgen.scenarios import demonstration

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("scrape", [None, "scrape"])
def test_the_demo_is_found_while_it_runs(tmp_path: Path, scrape: str | None) -> None:
    place = Workspace(tmp_path, tmp_path / "elsewhere", "smoke")
    with current.announced(
        place, tmp_path / "monitor.sock", tmp_path / scrape if scrape else None, tmp_path / "m.json"
    ):
        found = demonstration.find(place.current)
        assert found.member == tmp_path / "m.json"
        assert (found.host, found.pipeline, found.size) == ("http://127.0.10.1:8640", "syse", "smoke")
        assert (found.data, found.socket) == (place.data, tmp_path / "monitor.sock")
        assert found.discovery == (Discovery(tmp_path / scrape, namespace="default") if scrape else None)
    with pytest.raises(demonstration.NoDemoError):
        demonstration.find(place.current)


def test_the_demo_and_the_scenarios_mean_the_same_file() -> None:
    root = demonstration.PLACE.parents[2]
    assert Workspace(root, root, "smoke").current == demonstration.PLACE
