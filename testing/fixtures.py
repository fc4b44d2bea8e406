# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures for tests with an API server or a browser. One API server serves a session: tests use namespaces."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from testing import browser as browsers
from testing import cluster as clusters
from testing.pictures import Gallery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.browser import Browser
    from testing.cluster import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests with golden files."""
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files and pictures instead of comparing")


@pytest.fixture(scope="session")
def devcluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start an API server with Shai's resources."""
    with clusters.start(tmp_path_factory.mktemp("devcluster") / "data") as cluster:
        clusters.install(cluster)
        yield cluster


@pytest.fixture(scope="session")
def new_namespace(devcluster: Cluster) -> Callable[[], str]:
    """Return a function that makes a new namespace."""

    def make() -> str:
        name = f"test-{secrets.token_hex(4)}"
        devcluster.create_namespace(name)
        return name

    return make


@pytest.fixture
def namespace(new_namespace: Callable[[], str]) -> str:
    """Make a namespace for one test."""
    return new_namespace()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Start a browser; errors on the console and requests that leave the machine fail the test."""
    with browsers.running(tmp_path) as running:
        yield running
        assert running.faults() == []


@pytest.fixture
def gallery(request: pytest.FixtureRequest, tmp_path: Path) -> Gallery:
    """Return the pictures of the test's folder."""
    return Gallery(request.path.parent / "pictures", tmp_path, bool(request.config.getoption("--rewrite")))
