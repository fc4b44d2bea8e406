# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures for tests with an API server. One serves a whole session: tests use namespaces of their own."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from testing import cluster as clusters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster


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
        devcluster.kubectl("create", "namespace", name)
        return name

    return make


@pytest.fixture
def namespace(new_namespace: Callable[[], str]) -> str:
    """Make a namespace for one test."""
    return new_namespace()
