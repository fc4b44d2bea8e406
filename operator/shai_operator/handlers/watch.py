# SPDX-License-Identifier: BSD-2-Clause
"""Passes kopf's events to the loop.

It uses only event handlers and indexers, so that kopf never writes to objects: no annotations (which could exceed their
limit), finalizers or status. The indexers are there for one guarantee of kopf: it handles no event before it has
indexed all existing objects. The operator therefore never sees a pipeline without the tasks that existed before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

from shai_operator.control.webhooks import NAME
from shai_operator.reconcile.objects import GROUP, PLURALS, VERSION, WATCHED

if TYPE_CHECKING:
    from shai_operator.control.loop import Loop
    from shai_operator.control.webhooks import Registration

WEBHOOKS = "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"


def register(registry: kopf.OperatorRegistry, loop: Loop) -> None:
    """Pass the events of all kinds to ``loop``."""
    for kind, plural in WATCHED.items():
        _register(registry, loop, (GROUP, VERSION, plural) if kind in PLURALS else ("", "v1", plural))


def _register(registry: kopf.OperatorRegistry, loop: Loop, resource: tuple[str, str, str]) -> None:
    plural = resource[-1]

    @kopf.index(*resource, id=f"know-{plural}", registry=registry)
    async def know(body: kopf.Body, **_: Any) -> None:
        loop.know(dict(body))

    @kopf.on.event(*resource, id=f"observe-{plural}", registry=registry)
    async def observe(event: kopf.RawEvent, **_: Any) -> None:
        loop.observe(dict(event["object"]), gone=event["type"] == "DELETED")


def register_webhooks(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, kept: Registration) -> None:
    """Tell ``kept`` when the configuration of the webhooks changes; only this one object is watched."""
    settings.watching.field_selectors[WEBHOOKS[-1]] = f"metadata.name={NAME}"

    @kopf.on.event(*WEBHOOKS, id="observe-webhooks", registry=registry)
    async def observe(**_: Any) -> None:
        kept.observe()
