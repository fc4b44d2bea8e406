# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.running import small_pools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.running.small_pools import Site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Yield a directory for the pools of a module; it is removed at the end, with all processes that use it."""
    with small_pools.site() as made:
        yield made
