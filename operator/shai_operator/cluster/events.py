# SPDX-License-Identifier: BSD-2-Clause
"""Kubernetes events about objects, for `kubectl describe` and `kubectl get events`.

An event that is repeated increases the count of the existing one, as with client-go's recorder. The name follows from
the content, so that a restarted operator finds the event, too. Events are only information: if one cannot be written,
this is logged and not tried again.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.objects import Reference, name, namespace, uid

if TYPE_CHECKING:
    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.actions import Emit

_LOGGER = logging.getLogger(__name__)
_COMPONENT = "shai-operator"
_MESSAGE_LIMIT = 1024
"""Bytes of an event's message that the API server accepts."""


async def record(cluster: Cluster, emit: Emit) -> None:
    """Record an event, or increase its count."""
    now = timestamp(datetime.now(UTC))
    message = emit.message.encode()[:_MESSAGE_LIMIT].decode(errors="ignore")
    digest = hashlib.sha256(f"{uid(emit.obj)}\0{emit.type}\0{emit.reason}\0{message}".encode()).hexdigest()[:16]
    ref = Reference("Event", namespace(emit.obj) or "default", f"{name(emit.obj)[:200]}.{digest}")
    try:
        found = await cluster.get(ref)
        if found is not None:
            await cluster.merge(ref, {"count": (found.get("count") or 1) + 1, "lastTimestamp": now})
            return
        await cluster.create(_body(emit, ref, message, now))
    except ClusterError as error:
        _LOGGER.warning("event is lost: %s", error, extra={"reason": emit.reason})


def _body(emit: Emit, ref: Reference, message: str, now: str) -> dict[str, Any]:
    obj = emit.obj
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "involvedObject": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": name(obj),
            "namespace": namespace(obj),
            "uid": uid(obj),
        },
        "type": emit.type,
        "reason": emit.reason,
        "message": message,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
