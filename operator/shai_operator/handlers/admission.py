# SPDX-License-Identifier: BSD-2-Clause
"""Admission: the API server stores no text that the monitor could not use.

The check uses the parser of the monitors. An object is checked alone: objects that it names may be applied later. When
the parser does not answer, nothing is admitted; when the operator is down, the API server admits nothing either
(failurePolicy Fail).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

from shai_operator.control.webhooks import VALIDATED, publish
from shai_operator.monitors.client import MonitorError
from shai_operator.monitors.validator import messages
from shai_operator.reconcile.objects import GROUP, VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from shai_operator.cluster.client import Cluster
    from shai_operator.monitors.validator import Validator

_REFUSED, _UNAVAILABLE = 422, 503


class Server:
    """kopf's admission server, which the operator itself registers with the API server.

    kopf would need the right to create configurations of both kinds, and deletes them when it ends.
    """

    def __init__(self, cluster: Cluster, server: kopf.WebhookServer) -> None:
        self._cluster = cluster
        self._server = server

    async def __call__(self, serve: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Serve, and publish the address; serve again whenever the certificate changes."""
        async for client in self._server(serve):
            await publish(self._cluster, client)
            yield client


def register(registry: kopf.OperatorRegistry, validator: Validator) -> None:
    """Check objects of these kinds when they are created or changed."""
    for plural in VALIDATED:
        _register(registry, validator, plural)


def _register(registry: kopf.OperatorRegistry, validator: Validator, plural: str) -> None:
    @kopf.on.validate(
        GROUP,
        VERSION,
        plural,
        id=plural,
        operations=["CREATE", "UPDATE"],
        registry=registry,
    )
    async def check(body: kopf.Body, warnings: list[str], **_: Any) -> None:
        if body["metadata"].get("deletionTimestamp"):
            return  # only finalizers can still change
        try:
            problems = (await validator.check([dict(body)], alone=True)).problems
        except MonitorError as error:
            raise kopf.AdmissionError(f"cannot check it now: {error}; try again", code=_UNAVAILABLE) from error
        if problems:
            raise kopf.AdmissionError(messages(problems, most=10), code=_REFUSED)
        warnings.extend(_advice(dict(body)))


def _advice(body: dict[str, Any]) -> list[str]:
    spec = body.get("spec") or {}
    name = body["metadata"].get("name", "")
    if body["kind"] == "Policy" and spec.get("mode") in ("Audit", "Warn"):
        return [f"Policy {name} is in mode {spec['mode']}: what it forbids is recorded, not denied"]
    if body["kind"] == "Pipeline" and spec.get("mode") in ("baseline", "audit"):
        return [f"Pipeline {name} is in mode {spec['mode']}: nothing is denied"]
    return []
