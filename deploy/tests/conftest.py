# SPDX-License-Identifier: BSD-2-Clause
"""The deployment, applied to an API server."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from testing.cluster import PROGRAM, ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from testing.cluster import Cluster

_SCHEMA_SECONDS = 300


@pytest.fixture(scope="session")
def schemas(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory with strict schemas of the API server's kinds, for kubeconform."""
    folder = tmp_path_factory.mktemp("schemas")
    command = [str(PROGRAM), "schemas", str(folder), "--directory", str(devcluster.kubeconfig.parent)]
    done = subprocess.run(command, check=False, timeout=_SCHEMA_SECONDS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def rendered(devcluster: Cluster) -> list[dict[str, Any]]:
    """Return all objects of the deployment, without the custom resources."""
    return list(yaml.safe_load_all(devcluster.kubectl("kustomize", str(ROOT / "deploy" / "operator"))))


@pytest.fixture(scope="module")
def deployed(devcluster: Cluster, rendered: list[dict[str, Any]]) -> Cluster:
    """Apply the deployment without the webhooks: nothing answers them here, and other tests need no parser."""
    kept = [obj for obj in rendered if obj["kind"] != "ValidatingWebhookConfiguration"]
    devcluster.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(kept))
    # The authorizer learns of rights a moment after they are stored: one of the role, one of the cluster's.
    for right in (("get", "leases.coordination.k8s.io", "-n", "shai-system"), ("watch", "jailpools.shai.dev", "-A")):
        until(lambda right=right: can(devcluster, *right), f"the deployed account may {' '.join(right)}")
    return devcluster


def can(cluster: Cluster, *right: str) -> bool:
    """Ask kubectl, as a person would."""
    account = "system:serviceaccount:shai-system:shai-operator"
    return cluster.try_kubectl("auth", "can-i", *right, f"--as={account}").stdout.strip() == "yes"
