# SPDX-License-Identifier: BSD-2-Clause
"""Whose a member is, in the status of its pool: the API server refuses to change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crds.tests.objects import good
from testing.cluster import path_of

if TYPE_CHECKING:
    from testing.cluster import Cluster

API = "shai.dev/v1alpha1"
KEPT = {"namespace": "kept", "namespaceUID": "one", "configuration": "c"}


def write(cluster: Cluster, pool: str, **row: str) -> int:
    """Apply a row of a pool's member as the operator does; return the status of the answer."""
    rows = [{"name": f"{pool}-0", "ordinal": 0, **row}]
    body = {"apiVersion": API, "kind": "JailPool", "metadata": {"name": pool}, "status": {"members": rows}}
    path = path_of(API, "jailpools", "", pool) + "/status"
    options = {"fieldManager": "of-members", "force": "true"}
    kind = "application/apply-patch+yaml"
    return cluster.request("PATCH", path, body, content_type=kind, **options).status_code


def test_the_api_server_refuses_to_give_a_member_to_another_namespace(devcluster: Cluster) -> None:
    pool = good("JailPool")
    pool["metadata"]["name"] = name = "of-members"
    assert devcluster.request("POST", path_of(API, "jailpools"), pool).status_code == 201
    try:
        assert write(devcluster, name) == 200
        assert write(devcluster, name, **KEPT) == 200
        for other in ({"namespace": "other"}, {"namespaceUID": "two"}):
            assert write(devcluster, name, **{**KEPT, **other}) == 422
        assert write(devcluster, name, configuration="c") == 422, "as long as it is installed"
        assert write(devcluster, name) == 200, "when its data are removed"
        assert write(devcluster, name, **{**KEPT, "namespace": "other"}) == 200
    finally:
        devcluster.delete("jailpool", name)
