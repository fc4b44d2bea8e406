# SPDX-License-Identifier: BSD-2-Clause
"""Gives kopf access to the cluster, with the same KUBECONFIG or service account as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

if TYPE_CHECKING:
    from kopf import ConnectionInfo


def register(registry: kopf.OperatorRegistry) -> None:
    """Log in with the credentials of the environment."""

    @kopf.on.login(id="login", registry=registry)
    async def login(**details: Any) -> ConnectionInfo | None:
        return kopf.login_with_service_account(**details) or kopf.login_with_kubeconfig(**details)
