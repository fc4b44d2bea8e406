# SPDX-License-Identifier: BSD-2-Clause
"""Admission: the API server stores no text that the monitor could not use.

The check uses the parser of the monitors, and for thresholds of Benchmarks the load generator's. An object is checked
alone: objects that it names may be applied later. A FactSource is also checked against the pools that its namespace
uses already, since what they do not allow would end the pipelines there. When the parser does not answer, nothing is
admitted; when the operator is down, the API server admits nothing either (failurePolicy Fail).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import kopf

from loadgen import thresholds
from shai_operator.control.webhooks import BENCHMARKS, FACT_SOURCES, MANIFESTS, publish
from shai_operator.monitors.errors import MonitorError
from shai_operator.monitors.validator import messages
from shai_operator.reconcile import sources
from shai_operator.reconcile.objects import GROUP, VERSION, namespace

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp import web

    from shai_operator.cluster.client import Cluster
    from shai_operator.monitors.validator import Validator
    from shai_operator.reconcile.objects import Inventory

_REFUSED, _TOO_LARGE, _UNAVAILABLE = 422, 413, 503

_LARGEST_OBJECT = 1 << 20
"""Bytes of JSON. The API server stores little more than this, and its refusal names no remedy."""

_LARGEST_REVIEW = 40 << 20
"""More than an API server sends: an object and the one that it replaces, at most 3 MiB each, in an encoding that
writes some characters as six bytes."""

_REMEDIES = {"FactSource": "leave its facts where they are, and name a file, Redis or a URL instead of spec.inline"}
_REMEDY = "divide it into several"


class Webhooks(kopf.WebhookServer):
    """kopf's own server, without its limit for requests.

    By default it answers requests above 1 MiB with status 413 before anything is known about the object, and the user
    gets no other message. An update of an object of half that size is such a request, because it contains the object
    twice.
    """

    @staticmethod
    async def _serve(handle: kopf.WebhookFn, request: web.Request) -> web.Response:
        return await kopf.WebhookServer._serve(handle, request.clone(client_max_size=_LARGEST_REVIEW))  # noqa: SLF001 - its only hook


class Server:
    """kopf's admission server, which the operator itself registers with the API server.

    kopf would need the right to create configurations of both kinds, and deletes them when it ends.
    """

    def __init__(self, cluster: Cluster, server: kopf.WebhookServer, ready: asyncio.Event) -> None:
        self._cluster = cluster
        self._server = server
        self._ready = ready

    async def __call__(self, serve: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Serve, publish the address and set ``ready``; serve again whenever the certificate changes."""
        async for client in self._server(serve):
            await publish(self._cluster, client)
            # Not at the first call: the API server calls through a Service, which leads to ready operators only.
            self._ready.set()
            yield client


def register(registry: kopf.OperatorRegistry, validator: Validator, inventory: Inventory) -> None:
    """Check objects of these kinds when they are created or changed."""

    async def parsed(body: dict[str, Any]) -> None:
        try:
            problems = (await validator.check([body], alone=True)).problems
        except MonitorError as error:
            raise kopf.AdmissionError(f"cannot check it now: {error}; try again", code=_UNAVAILABLE) from error
        if problems:
            raise kopf.AdmissionError(messages(problems, most=10), code=_REFUSED)

    async def allowed(body: dict[str, Any]) -> None:
        await parsed(body)
        before = inventory.find(body["kind"], namespace(body), body["metadata"].get("name", ""))
        if before is not None and before.get("spec") == body.get("spec"):
            return  # what is stored already can still be labelled
        # With it, the pool would run no pipeline of the namespace: a mistake is better not stored.
        why = sources.source_refusal(body, inventory)
        if why:
            raise kopf.AdmissionError(why, code=_REFUSED)

    for plural in MANIFESTS:
        _register(registry, plural, allowed if plural == FACT_SOURCES else parsed)
    _register(registry, BENCHMARKS, _check_thresholds)


def _register(
    registry: kopf.OperatorRegistry, plural: str, examine: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
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
        _check_size(dict(body))
        await examine(dict(body))
        warnings.extend(_advice(dict(body)))


async def _check_thresholds(body: dict[str, Any]) -> None:
    """Raise AdmissionError if a threshold cannot be read; the text has the place in it."""
    problems = []
    for number, text in enumerate((body.get("spec") or {}).get("thresholds") or ()):
        try:
            thresholds.parse(text)
        except thresholds.ThresholdError as error:
            problems.append(f"spec.thresholds[{number}]: {error}")
    if problems:
        raise kopf.AdmissionError("; ".join(problems), code=_REFUSED)


def _check_size(body: dict[str, Any]) -> None:
    """Raise AdmissionError if an object is too large to be stored."""
    size = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    if size <= _LARGEST_OBJECT:
        return
    kind, name = body["kind"], body["metadata"].get("name", "")
    raise kopf.AdmissionError(
        f"{kind} {name} is too large: it has {size / 1024:.0f} KiB, and {_LARGEST_OBJECT // 1024} KiB is the most that "
        f"an object may have; {_REMEDIES.get(kind, _REMEDY)}",
        code=_TOO_LARGE,
    )


def _advice(body: dict[str, Any]) -> list[str]:
    spec = body.get("spec") or {}
    name = body["metadata"].get("name", "")
    if body["kind"] == "Policy" and spec.get("mode") in ("Audit", "Warn"):
        return [f"Policy {name} is in mode {spec['mode']}: what it forbids is recorded, not denied"]
    if body["kind"] == "Pipeline" and spec.get("mode") in ("baseline", "audit"):
        return [f"Pipeline {name} is in mode {spec['mode']}: nothing is denied"]
    return []
