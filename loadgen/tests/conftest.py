# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures: a small data directory, a fake Sys-E, and a member that serves it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import pytest

from loadgen.datasets import population
from loadgen.tests.data import write_data
from loadgen.tests.fake_syse import FakeSysE
from loadgen.tests.harness import left_over
from loadgen.tests.serving_member import ServingMember

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def people(data: Path) -> population.Population:
    return population.load(data)


@pytest.fixture
def server(people: population.Population) -> Iterator[FakeSysE]:
    with FakeSysE(people) as running:
        yield running


@pytest.fixture
def member(tmp_path: Path) -> Iterator[ServingMember]:
    made = ServingMember(tmp_path)
    process = made.start()
    try:
        yield made
        assert made.left_over() == []
    finally:
        process.terminate()
        process.wait()
        for pid in left_over(str(tmp_path)):  # tasks that are just ending, or after a failed test
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
