# SPDX-License-Identifier: BSD-2-Clause
"""Passes kopf's events to the loop.

It uses only event handlers, so that kopf never writes to objects: no annotations (which could exceed their limit),
finalizers or status. Before kopf begins, all existing objects are listed, so that the operator never sees a pipeline
without the tasks that existed before. kopf's indexers would do the same, in a time that grows with the square of the
number of objects.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import kopf

from shai_operator.cluster.client import ClusterError, NotServedError
from shai_operator.control.backoff import Backoff
from shai_operator.control.webhooks import NAME
from shai_operator.reconcile.objects import GROUP, PLURALS, VERSION, WATCHED

if TYPE_CHECKING:
    from shai_operator.cluster.client import Cluster
    from shai_operator.control.loop import Loop
    from shai_operator.control.webhooks import Registration

_LOGGER = logging.getLogger(__name__)
WEBHOOKS = "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"


def register(registry: kopf.OperatorRegistry, loop: Loop) -> None:
    """Pass the events of all kinds to ``loop``."""
    for kind, plural in WATCHED.items():
        _register(registry, loop, (GROUP, VERSION, plural) if kind in PLURALS else ("", "v1", plural))


def _register(registry: kopf.OperatorRegistry, loop: Loop, resource: tuple[str, str, str]) -> None:
    plural = resource[-1]

    @kopf.on.event(*resource, id=f"observe-{plural}", registry=registry)
    async def observe(event: kopf.RawEvent, **_: Any) -> None:
        loop.observe(dict(event["object"]), gone=event["type"] == "DELETED")


async def know_existing(cluster: Cluster, loop: Loop) -> None:
    """Let ``loop`` know all objects that exist, without reconciling them; return when all kinds have been listed."""
    backoff = Backoff()
    kinds = list(WATCHED)
    while kinds:
        try:
            for obj in await cluster.list(kinds[0]):
                loop.know(obj)
        except NotServedError as error:  # `Kinds` tells what that means
            _LOGGER.info("%s", error)
        except ClusterError as error:
            _LOGGER.warning("nothing is reconciled yet: %s; trying again", error)
            await backoff.wait()
            continue
        kinds.pop(0)


def register_webhooks(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, kept: Registration) -> None:
    """Tell ``kept`` when the configuration of the webhooks changes; only this one object is watched."""
    settings.watching.field_selectors[WEBHOOKS[-1]] = f"metadata.name={NAME}"

    @kopf.on.event(*WEBHOOKS, id="observe-webhooks", registry=registry)
    async def observe(**_: Any) -> None:
        kept.observe()
