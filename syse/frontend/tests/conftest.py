# SPDX-License-Identifier: BSD-2-Clause
"""A running front end for each test."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .harness import FrontEnd, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def start() -> Iterator[Callable[..., FrontEnd]]:
    """Start front ends that end with the test."""
    required("redis-server")
    required("redis-cli")
    started: list[FrontEnd] = []

    # A socket's path is limited to 107 bytes, so not in pytest's own long-named directories.
    with tempfile.TemporaryDirectory(prefix="syse-") as directory:

        def starter(**arguments: Any) -> FrontEnd:
            place = Path(directory) / str(len(started))
            place.mkdir()
            front_end = FrontEnd(place, **arguments).__enter__()
            started.append(front_end)
            return front_end

        yield starter
        for front_end in started:
            front_end.__exit__()


@pytest.fixture
def front_end(start: Callable[..., FrontEnd]) -> FrontEnd:
    """Start a front end in mode baseline with four workers."""
    return start()
