# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from testing.cluster import PROGRAM, ROOT
from tests.running import small_pools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.running.small_pools import Site


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a kubectl, and the plugin in it."""
    directory = tmp_path_factory.mktemp("bin")
    (directory / "kubectl").write_text(f'#!/bin/sh\nexec {PROGRAM} kubectl "$@"\n')
    (directory / "kubectl").chmod(0o755)
    subprocess.run(
        ["go", "build", "-C", str(ROOT / "monitor"), "-o", str(directory / "kubectl-shai"), "./cmd/kubectl-shai"],
        check=True,
    )
    return directory


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Yield a directory for the pools of a module; it is removed at the end, with all processes that use it."""
    with small_pools.site() as made:
        yield made
