# SPDX-License-Identifier: BSD-2-Clause
"""Admission: the API server stores no text that the monitor could not use.

The check uses the parser of the monitors, and for thresholds of Benchmarks the load generator's. An object is checked
alone: objects that it names may be applied later. A FactSource is also checked against the pools that its namespace
uses already, since what they do not allow would end the pipelines there. When the parser does not answer, nothing is
admitted; when no operator is up, the API server admits nothing either (failurePolicy Fail).

Every replica answers, whether it leads or not. Anybody who reaches the address may ask: the answer depends on the
object that is sent and, for a FactSource, on what its pools allow; what all requests together may hold in memory is
limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import weakref
from typing import TYPE_CHECKING, Any

from aiohttp import web

from shai_operator.cluster.client import ClusterError
from shai_operator.control.webhooks import ANALYSES, BENCHMARKS, FACT_SOURCES, MANIFESTS
from shai_operator.handlers.examining import Refusal, advice, check_schedule, check_size, check_thresholds
from shai_operator.monitors.errors import MonitorError
from shai_operator.monitors.validator import MISSING, messages
from shai_operator.reconcile import sources
from shai_operator.reconcile.objects import GROUP, name, namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from shai_operator.control.stored import Stored
    from shai_operator.monitors.validator import Validator

    _Examine = Callable[[dict[str, Any]], Awaitable[Sequence[str] | None]]
    """Raises Refusal, or returns warnings for who sent the object."""

_LOGGER = logging.getLogger(__name__)
_REFUSED, _UNAVAILABLE = 422, 503

_LARGEST_REVIEW = 40 << 20
"""More than an API server sends: an object and the one that it replaces, at most 3 MiB each, in an encoding that
writes some characters as six bytes."""
_MOST_HELD = 4 * _LARGEST_REVIEW
"""Bytes of all requests that are read or answered at one time."""
_READ_SECONDS = 10.0
"""How long a request may take to arrive, or wait for its turn: the API server does not wait longer for the answer."""
_WARNINGS = 10
"""How many warnings about a text are sent; clients print no more."""
_AT_ONCE = 2
"""How many objects of one namespace are examined at one time."""


class Admission:
    """What the API server asks: a path for each kind."""

    def __init__(self, validator: Validator, stored: Stored) -> None:
        self._validator = validator
        self._stored = stored
        self._held = 0
        self._turns: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()
        """By namespace: who sends many objects waits for their turn, and nobody else does."""
        self.application = web.Application(client_max_size=_LARGEST_REVIEW)
        """To be served with TLS."""
        examine: dict[str, _Examine] = dict.fromkeys(MANIFESTS, self._parsed)
        examine[FACT_SOURCES] = self._allowed
        examine[BENCHMARKS], examine[ANALYSES] = check_thresholds, check_schedule
        for plural, how in examine.items():
            self.application.router.add_post(f"/{plural}", self._handler(plural, how))

    def _handler(self, plural: str, examine: _Examine) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            held: list[int] = []
            try:
                asked = _asked(await self._read(request, held), plural)
                async with self._turn(namespace(asked["object"])):
                    return web.json_response(await _review(asked, examine))
            finally:
                self._held -= sum(held)

        return answer

    @contextlib.asynccontextmanager
    async def _turn(self, space: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(space, asyncio.Semaphore(_AT_ONCE))
        try:
            async with asyncio.timeout(_READ_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            text = "too many objects of this namespace are being checked; try again"
            raise web.HTTPServiceUnavailable(text=text) from error
        try:
            yield
        finally:
            turn.release()

    async def _read(self, request: web.Request, held: list[int]) -> bytes:
        """Read a request; ``held`` gets what of it counts as held."""
        parts = []
        try:
            async with asyncio.timeout(_READ_SECONDS):
                async for part in request.content.iter_any():
                    held.append(len(part))
                    self._held += len(part)
                    if sum(held) > _LARGEST_REVIEW:
                        raise web.HTTPRequestEntityTooLarge(_LARGEST_REVIEW, sum(held))
                    if self._held > _MOST_HELD:
                        raise web.HTTPServiceUnavailable(text="too much is being checked; try again")
                    parts.append(part)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(text="the request did not arrive in time") from error
        return b"".join(parts)

    async def _parsed(self, body: dict[str, Any]) -> Sequence[str]:
        """Return what the text of a policy says that was probably not meant."""
        try:
            answer = await self._validator.check([body], alone=True)
        except MonitorError as error:
            # Anybody may read the answer, and the error names files of this machine.
            _LOGGER.warning("cannot check %s: %s", body["metadata"]["name"], error)
            raise Refusal(_UNAVAILABLE, "the operator cannot check it now; try again") from error
        # What a policy includes may be applied later, or in another order.
        if problems := [problem for problem in answer.problems if problem.code != MISSING]:
            raise Refusal(_REFUSED, messages(problems, most=10))
        return [str(suspicion) for suspicion in answer.suspicions[:_WARNINGS]]

    async def _allowed(self, body: dict[str, Any]) -> None:
        await self._parsed(body)
        try:
            inventory = await self._stored.around(body)
        except ClusterError as error:
            _LOGGER.warning("cannot check %s: %s", body["metadata"]["name"], error)
            raise Refusal(_UNAVAILABLE, "the operator cannot check it now; try again") from error
        before = inventory.find(body["kind"], namespace(body), name(body))
        if before is not None and before.get("spec") == body.get("spec"):
            return  # what is stored already can still be labelled
        # With it, the pool would run no pipeline of the namespace: a mistake is better not stored.
        if why := sources.source_refusal(body, inventory):
            raise Refusal(_REFUSED, why)


def _asked(content: bytes, plural: str) -> dict[str, Any]:
    """Return the request of an AdmissionReview; HTTPBadRequest when it is none about this kind."""
    try:
        asked = json.loads(content)["request"]
        resource, body = asked["resource"], asked["object"]
        right = (resource["group"], resource["resource"]) == (GROUP, plural)
        texts = asked["uid"], body["kind"], body["metadata"]["name"]
        if right and all(isinstance(text, str) for text in texts) and isinstance(body.get("spec"), dict):
            return dict(asked)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise web.HTTPBadRequest(text=f"this is no AdmissionReview with an object of {plural}.{GROUP}")


async def _review(asked: dict[str, Any], examine: _Examine) -> dict[str, Any]:
    """Return the AdmissionReview that answers a request."""
    body, answer = asked["object"], {"uid": asked["uid"], "allowed": True}
    if not body["metadata"].get("deletionTimestamp"):  # otherwise only finalizers can still change
        try:
            check_size(body)
            suspicions = await examine(body) or ()
            if warnings := [*advice(body), *suspicions]:
                answer["warnings"] = warnings
        except Refusal as refusal:
            answer |= {"allowed": False, "status": {"code": refusal.code, "message": str(refusal)}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
