# SPDX-License-Identifier: BSD-2-Clause
"""Where the demo writes, and where the load for its rollouts looks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo import load, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def checkout() -> Iterator[Path]:
    """Make a folder whose parents other users can search, as not in pytest's and in some users' $TMPDIR."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(("mode", "expected"), [(0o755, None), (0o700, Path("/var/lib/shai-demo"))])
def test_it_writes_where_tasks_can_read(checkout: Path, mode: int, expected: Path | None) -> None:
    checkout.chmod(mode)
    assert workspace.default_output(checkout) == (expected or checkout / "out" / "demo")


def test_load_has_the_users_of_the_demo_that_ran_last(tmp_path: Path) -> None:
    assert load.newest_data(tmp_path) == tmp_path / "quick" / "data"
    for age, size in enumerate(("smoke", "standard", "quick")):
        data = tmp_path / size / "data"
        data.mkdir(parents=True)
        os.utime(data, (1000 - age, 1000 - age))
    assert load.newest_data(tmp_path) == tmp_path / "smoke" / "data"
