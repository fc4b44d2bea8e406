# SPDX-License-Identifier: BSD-2-Clause
"""Tells the API server where the admission server is and which authority to trust, and again when that is lost.

In a cluster, the ValidatingWebhookConfiguration belongs to who installs the operator. The operator fills in the
authority, and makes the whole object again when it was deleted. Without a Service, as on a developer's machine, it
belongs to the operator, which also takes back changes.

The right to make configurations adds nothing to the right to change this one: either could ask for every request of
the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.control.backoff import Backoff
from shai_operator.reconcile.objects import GROUP, VERSION, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster

NAME = GROUP
FACT_SOURCES = "factsources"
MANIFESTS = ("policies", "tasks", "pipelines", FACT_SOURCES)
"""The kinds that a monitor reads."""
BENCHMARKS, ANALYSES = "benchmarks", "offlineanalyses"
VALIDATED = (*MANIFESTS, BENCHMARKS, ANALYSES)
"""The kinds that are checked before they are stored."""

_LOGGER = logging.getLogger(__name__)
CONFIGURATION = Reference("ValidatingWebhookConfiguration", "", NAME)
_TIMEOUT_SECONDS = 10
_SERVICE_PORT = 443
_PUBLISHED_SECONDS = 2.0
_LOOK_SECONDS = 600.0
"""How often the configuration is read although its watch says nothing."""
_UNINSTALL_SECONDS = 3.0
"""How long a configuration that somebody else made is left deleted: an operator that is being uninstalled ends."""


@dataclass(frozen=True)
class Address:
    """How the API server reaches the admission server."""

    host: str
    port: int
    authority: str
    """PEM."""

    def client(self, plural: str) -> dict[str, Any]:
        """Return the clientConfig of a kind's webhook."""
        bundle = {"caBundle": base64.b64encode(self.authority.encode()).decode()}
        service = self.service
        if service is not None:
            return {"service": {**service, "port": _SERVICE_PORT, "path": f"/{plural}"}, **bundle}
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {"url": f"https://{host}:{self.port}/{plural}", **bundle}

    @property
    def service(self) -> dict[str, str] | None:
        """Return the Service that a host of the form name.namespace.svc names."""
        parts = self.host.split(".")
        return {"name": parts[0], "namespace": parts[1]} if len(parts) == 3 and parts[2] == "svc" else None  # noqa: PLR2004


class Registration:
    """The configuration at the API server, as it should be."""

    def __init__(self, cluster: Cluster, address: Address, owner: str) -> None:
        self._cluster = cluster
        self._address = address
        self._owner = owner
        self._changed = asyncio.Event()

    def observe(self) -> None:
        """Note that the configuration has been changed or deleted."""
        self._changed.set()

    async def keep(self) -> None:
        """Make the configuration what it should be, now and whenever it is changed, until cancelled."""
        backoff = Backoff()
        while True:
            self._changed.clear()
            try:
                await self._restore()
            except ClusterError as error:
                _LOGGER.warning("the API server may not ask this operator: %s; trying again", error)
                await backoff.wait()
            else:
                backoff.reset()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._changed.wait()

    async def _restore(self) -> None:
        found = await self._cluster.get(CONFIGURATION)
        if found is None and self._address.service is not None:
            await asyncio.sleep(_UNINSTALL_SECONDS)
            found = await self._cluster.get(CONFIGURATION)
        if found is None:
            made = configuration(self._address)
            made["metadata"]["ownerReferences"] = await self._owners()
            if await self._cluster.create(made) is not None:
                _LOGGER.info("%s was missing and has been made", CONFIGURATION)
            return
        wanted = restored(found, self._address)
        if wanted != found.get("webhooks"):
            # This replaces the whole list, so it has to be unchanged since it was read.
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            await self._cluster.merge(CONFIGURATION, {"metadata": version, "webhooks": wanted})
            _LOGGER.info("%s was not what it should be and has been corrected", CONFIGURATION)

    async def _owners(self) -> list[dict[str, Any]]:
        """Return with what the configuration is deleted: an uninstalled operator must not leave it behind."""
        role = await self._cluster.get(Reference("ClusterRole", "", self._owner)) if self._owner else None
        if role is None:
            return []
        metadata = role["metadata"]
        return [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        ]


async def await_published(cluster: Cluster, address: Address) -> None:
    """Wait until the API server asks this operator, or another replica with the same authority."""
    backoff = Backoff(longest=_PUBLISHED_SECONDS)
    while True:
        with contextlib.suppress(ClusterError):  # who leads, reports it
            found = await cluster.get(CONFIGURATION)
            if found is not None and restored(found, address) == found.get("webhooks"):
                return
        await backoff.wait()


def restored(found: Mapping[str, Any], address: Address) -> list[dict[str, Any]]:
    """Return what the webhooks of a configuration should be."""
    present = found.get("webhooks") or ()
    if address.service is None or not present:
        return list(configuration(address)["webhooks"])
    return [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": address.client("")["caBundle"]}}
        for webhook in present
    ]


def configuration(address: Address) -> dict[str, Any]:
    """Return the whole configuration, with all defaults."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": CONFIGURATION.kind,
        "metadata": {"name": NAME},
        "webhooks": [_webhook(plural, address) for plural in VALIDATED],
    }


def _webhook(plural: str, address: Address) -> dict[str, Any]:
    return {
        "name": f"{plural}.{GROUP}",
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "resources": [plural],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }
        ],
        "clientConfig": address.client(plural),
        # Only the finalizers of an object change while it is being deleted; this has to work while the operator is
        # down.
        "matchConditions": [
            {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }
