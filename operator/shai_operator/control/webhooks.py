# SPDX-License-Identifier: BSD-2-Clause
"""Tells the API server where the admission server is, and which certificate authority to trust.

A deployment contains a ValidatingWebhookConfiguration, and the operator only fills in the authority (and the
address, if there is no Service). It therefore needs no right to create configurations, with which it could
read every request of the cluster. If there is no configuration, as on a developer's machine, it creates one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.reconcile.objects import GROUP, VERSION, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster

NAME = GROUP
FACT_SOURCES = "factsources"
MANIFESTS = ("policies", "tasks", "pipelines", FACT_SOURCES)
"""The kinds that a monitor reads."""
BENCHMARKS = "benchmarks"
VALIDATED = (*MANIFESTS, BENCHMARKS)
"""The kinds that are checked before they are stored."""

_LOGGER = logging.getLogger(__name__)
_RETRY_SECONDS = 2.0
_CONFIGURATION = Reference("ValidatingWebhookConfiguration", "", NAME)
_TIMEOUT_SECONDS = 10


async def publish(cluster: Cluster, client: Mapping[str, Any]) -> None:
    """Publish the URL and the caBundle (base64) of ``client`` to the API server; repeat until it succeeds."""
    while True:
        try:
            await _publish(cluster, client)
        except ClusterError as error:
            _LOGGER.warning("the admission server is not yet known: %s; again in %.0f s", error, _RETRY_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def _publish(cluster: Cluster, client: Mapping[str, Any]) -> None:
    found = await cluster.get(_CONFIGURATION)
    if found is None:
        await cluster.create(configuration(client))
        return
    webhooks = [{**webhook, "clientConfig": _client(webhook, client)} for webhook in found.get("webhooks") or ()]
    if webhooks != found.get("webhooks"):
        # This replaces the whole list, so it has to be unchanged since it was read.
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        await cluster.merge(_CONFIGURATION, {"metadata": version, "webhooks": webhooks})


def configuration(client: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration for a server at an address."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": _CONFIGURATION.kind,
        "metadata": {"name": NAME},
        "webhooks": [_webhook(plural, client) for plural in VALIDATED],
    }


def _webhook(plural: str, client: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{plural}.{GROUP}"
    return {
        "name": name,
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "resources": [plural],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }
        ],
        "clientConfig": {"url": _url(client, plural), "caBundle": client["caBundle"]},
        # Only the finalizers of an object change while it is being deleted; this has to work while the operator is
        # down.
        "matchConditions": [
            {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _client(webhook: Mapping[str, Any], client: Mapping[str, Any]) -> dict[str, Any]:
    known = webhook.get("clientConfig") or {}
    if "service" in known:
        return {**known, "caBundle": client["caBundle"]}
    return {"url": _url(client, str(webhook["name"]).partition(".")[0]), "caBundle": client["caBundle"]}


def _url(client: Mapping[str, Any], plural: str) -> str:
    return f"{str(client['url']).rstrip('/')}/{plural}"
