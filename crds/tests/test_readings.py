# SPDX-License-Identifier: BSD-2-Clause
"""A MemberReading is in the name of who creates it, whatever roles a namespace gives its users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crds.tests.objects import good, path
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx2

    from testing.cluster import Cluster


@pytest.fixture(scope="module")
def space(new_namespace: Callable[[], str]) -> str:
    return new_namespace()


@pytest.fixture(scope="module", params=["shai-member-reader", "cluster-admin"])
def reader(
    devcluster: Cluster, space: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Cluster, str]]:
    """Yield a user who may create readings in one namespace, and the user's name."""
    user = devcluster.account(space, request.param, f"--clusterrole={request.param}", tmp_path_factory.mktemp("reader"))
    called = f"system:serviceaccount:{space}:{request.param}"
    until(lambda: "cannot create resource" not in create(user, space, called).text, "the authorizer knows the role")
    until(lambda: "who creates the object" in create(user, space, "nobody").text, "and the policy")
    yield user, called
    user.close()


MERGE = "application/merge-patch+json"


def create(user: Cluster, space: str, called: str, **metadata: list[str]) -> httpx2.Response:
    body: dict[str, Any] = good("MemberReading", "", ("user", called))
    body["metadata"] |= metadata
    return user.request("POST", path("MemberReading", space), body, dryRun="All")


def test_a_reading_is_in_the_name_of_who_creates_it(reader: tuple[Cluster, str], space: str) -> None:
    user, called = reader
    assert create(user, space, called).status_code == 201
    for other in ("administrator", "", f"{called} ", called.upper()):
        answer = create(user, space, other)
        assert answer.status_code in (403, 422), answer.text
        assert f"who creates the object: {called}" in answer.text or other == ""


def test_a_reading_is_not_kept_by_finalizers(reader: tuple[Cluster, str], space: str) -> None:
    user, called = reader
    answer = create(user, space, called, finalizers=["example.com/stay"])
    assert answer.status_code == 403, answer.text
    assert "metadata.finalizers has to be empty" in answer.text


def test_a_reading_gets_no_finalizers_later(devcluster: Cluster, reader: tuple[Cluster, str], space: str) -> None:
    """Whatever a role allows. The API server's own, of a deletion in the foreground, come and go."""
    user, called = reader
    body: dict[str, Any] = good("MemberReading", "", ("user", called))
    there = path("MemberReading", space, body["metadata"]["name"])
    assert user.request("POST", path("MemberReading", space), body).status_code == 201
    try:
        for finalizers in (["example.com/stay"], ["foregroundDeletion"], ["orphan"]):
            answer = devcluster.request("PATCH", there, {"metadata": {"finalizers": finalizers}}, content_type=MERGE)
            assert answer.status_code == 403, answer.text
            assert "metadata.finalizers has to be empty" in answer.text
        labelled = {"metadata": {"labels": {"example.com/mine": "1"}}}
        assert devcluster.request("PATCH", there, labelled, content_type=MERGE).is_success
    finally:
        user.request("DELETE", there, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})
    until(lambda: devcluster.request("GET", there).status_code == 404, "it is gone")
