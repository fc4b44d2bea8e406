# SPDX-License-Identifier: BSD-2-Clause
"""Requests to the API server. Objects are plain JSON in both directions.

One client serves the whole operator; its methods may be awaited concurrently.
"""

from __future__ import annotations

import asyncio
import copy
import random
import time
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.config import client_adapter
from lightkube.core.resource import api_info
from lightkube.types import CascadeType, PatchType

from shai_operator.cluster.resources import RESOURCES, WITHOUT_NAMESPACE
from shai_operator.metrics.counted import API_REQUESTS
from shai_operator.reconcile.objects import FINALIZER, Reference, finalizers, reference, uid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from shai_operator.reconcile.objects import Object

_NOT_FOUND, _CONFLICT = 404, 409
_REFUSED = (400, 403, 413, 422)
"""A webhook may refuse with any of them, a quota with 403."""
_LATER = (429, 503)
"""The API server did nothing; when it says after how many seconds to ask again, the same is asked again then."""
_PATIENCE_SECONDS = 30.0
"""How long one request is repeated."""
_REQUEST_SECONDS = 30.0
_T = TypeVar("_T")
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class ClusterError(Exception):
    """The API server refused a request or was not reached; the text names request and cause."""


class ConflictError(ClusterError):
    """The object was changed or replaced in the meantime; read it again before you act."""


class RefusedError(ClusterError):
    """The API server, or a policy or quota of it, does not take what was sent; it will not take the same later."""


class NotServedError(ClusterError):
    """The API server does not serve the kind."""


class Cluster:
    """The API server that the environment names: ``KUBECONFIG``, or a pod's service account."""

    def __init__(self) -> None:
        timeout = httpx2.Timeout(_REQUEST_SECONDS)
        self._client = AsyncClient(timeout=timeout)
        # lightkube sends no header Accept.
        self._plain = client_adapter.AsyncClient(self._client.config, client_adapter.ConnectionParams(timeout=timeout))
        self._may_write: Callable[[], bool] = lambda: True

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        await self._plain.aclose()

    def within(self, holds: Callable[[], bool]) -> Cluster:
        """Return the same API server for a leader: nothing is written when ``holds()`` is not true any more."""
        fenced = copy.copy(self)
        fenced._may_write = holds  # noqa: SLF001 - of the same class
        return fenced

    async def get(self, ref: Reference) -> dict[str, Any] | None:
        """Return an object; None when it does not exist."""
        try:
            found = await self._send("get", ref, self._client.get, RESOURCES[ref.kind], ref.name, **_namespace(ref))
        except _NotFoundError:
            return None
        return _plain(found, ref.kind)

    async def list(
        self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """List the objects of a kind with these labels, in one namespace or (None) in all.

        NotServedError when there is no such kind.
        """
        API_REQUESTS.labels("list", kind).inc()
        scope: dict[str, Any] = {} if kind in WITHOUT_NAMESPACE else {"namespace": namespace or "*"}
        if labels:
            scope["labels"] = dict(labels)

        async def listed() -> list[dict[str, Any]]:
            return [_plain(item, kind) async for item in self._client.list(RESOURCES[kind], **scope)]

        try:
            return await _patiently(listed)
        except ApiError as error:
            missing = error.status.code == _NOT_FOUND
            raise (NotServedError if missing else ClusterError)(f"list {kind}: {error.status.message}") from error
        except Exception as error:
            raise _unanswered(f"list {kind}", error) from error

    async def versions(self, kind: str) -> dict[Reference, int]:
        """Return the resource version of each object of a kind; only metadata is transferred."""
        API_REQUESTS.labels("list", kind).inc()
        info = api_info(RESOURCES[kind])
        root = f"/apis/{info.resource.group}" if info.resource.group else "/api"
        path = f"{root}/{info.resource.version}/{info.plural}"
        try:
            answer = await _patiently(lambda: self._asked(path))
            found = [item["metadata"] for item in answer.json()["items"] or ()]  # null when there are none
            return {
                Reference(kind, one.get("namespace", ""), one["name"]): int(one["resourceVersion"]) for one in found
            }
        except httpx2.HTTPStatusError as error:
            raise ClusterError(f"list the versions of {kind}: status {error.response.status_code}") from error
        except Exception as error:
            raise _unanswered(f"list the versions of {kind}", error) from error

    async def _asked(self, path: str) -> httpx2.Response:
        answer = await self._plain.get(path, headers={"Accept": _METADATA})
        return answer.raise_for_status()

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Create an object and return it; None when one of this name exists already."""
        ref = reference(body)
        resource = RESOURCES[ref.kind]
        try:
            made = await self._send(
                "create", ref, self._client.create, resource.from_dict(dict(body)), **_namespace(ref)
            )
        except ConflictError:
            return None
        return _plain(made, ref.kind)

    async def delete(self, ref: Reference, uid: str) -> None:
        """Delete an object, and what it owns, if it still has this uid; do nothing when it does not exist any more."""
        found = await self.get(ref)
        if found is None or found["metadata"]["uid"] != uid:
            return
        try:
            resource = RESOURCES[ref.kind]
            # Of a Job, the API server would otherwise leave the pods.
            background = {"cascade": CascadeType.BACKGROUND, **_namespace(ref)}
            await self._send("delete", ref, self._client.delete, resource, ref.name, **background)
        except _NotFoundError:
            return

    async def apply(self, body: Mapping[str, Any], writer: str) -> None:
        """Apply an object server-side: ``writer`` owns exactly the fields of ``body``."""
        ref = reference(body)
        await self._patch("apply", RESOURCES[ref.kind], ref, body, PatchType.APPLY, field_manager=writer, force=True)

    async def apply_status(self, obj: Object, writer: str, status: Mapping[str, Any]) -> dict[str, Any] | None:
        """Apply the part of a status that ``writer`` owns; return the object, None when it does not exist any more."""
        ref = reference(obj)
        body = {
            "apiVersion": obj["apiVersion"],
            "kind": ref.kind,
            # Another object of the same name must not get this one's status.
            "metadata": {"name": ref.name, "uid": uid(obj)} | ({"namespace": ref.namespace} if ref.namespace else {}),
            "status": dict(status),
        }
        resource = RESOURCES[ref.kind].Status
        try:
            found = await self._patch("status", resource, ref, body, PatchType.APPLY, field_manager=writer, force=True)
        except (_NotFoundError, ConflictError):
            return None
        return _plain(found, ref.kind)

    async def set_finalizer(self, obj: Object, *, present: bool) -> None:
        """Add the operator's finalizer or remove it; ConflictError when the object was changed in the meantime."""
        kept = [finalizer for finalizer in finalizers(obj) if finalizer != FINALIZER]
        body = {
            "metadata": {
                "finalizers": [*kept, FINALIZER] if present else kept,
                # This replaces the whole list, so the object has to be unchanged since it was read.
                "resourceVersion": obj["metadata"]["resourceVersion"],
                "uid": uid(obj),
            }
        }
        ref = reference(obj)
        try:
            await self._patch("finalizer", RESOURCES[ref.kind], ref, body, PatchType.MERGE)
        except _NotFoundError:
            return

    async def set_annotation(self, obj: Object, key: str, value: str) -> None:
        """Change an annotation, or remove it (empty value); do nothing when the object was changed in the meantime."""
        metadata = {
            "annotations": {key: value or None},
            # What a person has written since must not be lost.
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "uid": uid(obj),
        }
        ref = reference(obj)
        try:
            await self._patch("annotation", RESOURCES[ref.kind], ref, {"metadata": metadata}, PatchType.MERGE)
        except (_NotFoundError, ConflictError):
            return

    async def merge(self, ref: Reference, body: Mapping[str, Any]) -> None:
        """Merge ``body`` into an object; ClusterError when it does not exist."""
        await self._patch("merge", RESOURCES[ref.kind], ref, body, PatchType.MERGE)

    async def replace(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace an object; ConflictError when it was changed since it was read."""
        ref = reference(body)
        resource = RESOURCES[ref.kind]
        found = await self._send(
            "replace", ref, self._client.replace, resource.from_dict(dict(body)), **_namespace(ref)
        )
        return _plain(found, ref.kind)

    async def _patch(
        self, verb: str, resource: Any, ref: Reference, body: Mapping[str, Any], how: PatchType, **options: Any
    ) -> Any:
        return await self._send(
            verb, ref, self._client.patch, resource, ref.name, dict(body), patch_type=how, **_namespace(ref), **options
        )

    async def _send(self, verb: str, ref: Reference, request: Any, *arguments: Any, **options: Any) -> Any:
        if verb != "get" and not self._may_write():
            raise ClusterError(f"{verb} {ref}: this operator does not lead any more")
        API_REQUESTS.labels(verb, ref.kind).inc()
        try:
            return await _patiently(lambda: request(*arguments, **options))
        except ApiError as error:
            raise _KINDS.get(error.status.code or 0, ClusterError)(f"{verb} {ref}: {error.status.message}") from error
        except Exception as error:
            raise _unanswered(f"{verb} {ref}", error) from error


async def _patiently(request: Callable[[], Awaitable[_T]]) -> _T:
    """Send a request, again when the API server says after how long, for `_PATIENCE_SECONDS`."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await request()
        except httpx2.HTTPStatusError as error:  # lightkube's ApiError is one
            seconds = _retry_after(error.response)
            if seconds is None or time.monotonic() + seconds > until:
                raise
            await asyncio.sleep(seconds * random.uniform(1.0, 1.25))  # noqa: S311 - spreads retries, is no secret


def _retry_after(answer: httpx2.Response) -> float | None:
    """Return for how many seconds to wait; None when the API server does not say so (RFC 9110, 10.2.3)."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if answer.status_code in _LATER and text.isdecimal() else None


class _NotFoundError(ClusterError):
    """The object does not exist."""


_KINDS: dict[int, type[ClusterError]] = {
    _NOT_FOUND: _NotFoundError,
    _CONFLICT: ConflictError,
    **dict.fromkeys(_REFUSED, RefusedError),
}


def _unanswered(request: str, error: Exception) -> ClusterError:
    """Return the error of a request without an answer of the API server.

    What a load balancer answers in its place the library fails to read, with a KeyError for example.
    """
    return ClusterError(f"{request}: the API server was not reached: {error!r}")


def _namespace(ref: Reference) -> dict[str, str]:
    return {"namespace": ref.namespace} if ref.namespace else {}


def _plain(found: Any, kind: str) -> dict[str, Any]:
    plain: dict[str, Any] = found.to_dict()
    plain["kind"] = kind  # the items of a list have no kind and version
    return plain
