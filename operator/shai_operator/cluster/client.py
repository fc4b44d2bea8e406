# SPDX-License-Identifier: BSD-2-Clause
"""Requests to the API server. Objects go in and come out as plain JSON.

One client serves the whole operator; its methods may be awaited concurrently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.types import PatchType
from prometheus_client import Counter

from shai_operator.cluster.resources import RESOURCES, WITHOUT_NAMESPACE
from shai_operator.reconcile.objects import FINALIZER, Reference, finalizers, reference, uid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

REQUESTS = Counter(
    "shai_operator_api_requests_total", "Requests to the API server, by verb and kind.", ["verb", "kind"]
)

_NOT_FOUND, _CONFLICT, _INVALID = 404, 409, 422


class ClusterError(Exception):
    """The API server refused a request or was not reached; the text names request and cause."""


class ConflictError(ClusterError):
    """The object has changed or been replaced meanwhile; look again before you act."""


class Cluster:
    """The API server that the environment names: ``KUBECONFIG``, or a pod's service account."""

    def __init__(self) -> None:
        self._client = AsyncClient(timeout=httpx2.Timeout(30.0))

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def get(self, ref: Reference) -> dict[str, Any] | None:
        """Read an object; None when there is none."""
        try:
            found = await self._send("get", ref, self._client.get, RESOURCES[ref.kind], ref.name, **_namespace(ref))
        except _NotFoundError:
            return None
        return _plain(found, ref.kind)

    async def list(
        self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """List the objects of a kind with these labels, of one namespace or (None) of all."""
        REQUESTS.labels("list", kind).inc()
        scope: dict[str, Any] = {} if kind in WITHOUT_NAMESPACE else {"namespace": namespace or "*"}
        if labels:
            scope["labels"] = dict(labels)
        try:
            return [_plain(item, kind) async for item in self._client.list(RESOURCES[kind], **scope)]
        except (ApiError, httpx2.HTTPError) as error:
            raise ClusterError(f"list {kind}: {error}") from error

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
        """Delete an object, if it is still the one with this uid; nothing when it is gone."""
        found = await self.get(ref)
        if found is None or found["metadata"]["uid"] != uid:
            return
        try:
            await self._send("delete", ref, self._client.delete, RESOURCES[ref.kind], ref.name, **_namespace(ref))
        except _NotFoundError:
            return

    async def apply(self, body: Mapping[str, Any], writer: str) -> None:
        """Apply an object server-side: ``writer`` owns exactly the fields of ``body``."""
        ref = reference(body)
        await self._patch("apply", RESOURCES[ref.kind], ref, body, PatchType.APPLY, field_manager=writer, force=True)

    async def apply_status(self, thing: Object, writer: str, status: Mapping[str, Any]) -> dict[str, Any] | None:
        """Apply the part of a status that ``writer`` owns; return the object, None when it is gone."""
        ref = reference(thing)
        body = {
            "apiVersion": thing["apiVersion"],
            "kind": ref.kind,
            # Another object of the same name must not get this one's status.
            "metadata": {"name": ref.name, "uid": uid(thing)} | ({"namespace": ref.namespace} if ref.namespace else {}),
            "status": dict(status),
        }
        resource = RESOURCES[ref.kind].Status
        try:
            found = await self._patch("status", resource, ref, body, PatchType.APPLY, field_manager=writer, force=True)
        except (_NotFoundError, ConflictError):
            return None
        return _plain(found, ref.kind)

    async def set_finalizer(self, thing: Object, *, present: bool) -> None:
        """Add the operator's finalizer or take it away; ConflictError when others wrote meanwhile."""
        kept = [one for one in finalizers(thing) if one != FINALIZER]
        body = {
            "metadata": {
                "finalizers": [*kept, FINALIZER] if present else kept,
                # The whole list is replaced: only on the object as it was seen.
                "resourceVersion": thing["metadata"]["resourceVersion"],
                "uid": uid(thing),
            }
        }
        ref = reference(thing)
        try:
            await self._patch("finalizer", RESOURCES[ref.kind], ref, body, PatchType.MERGE)
        except _NotFoundError:
            return

    async def merge(self, ref: Reference, body: Mapping[str, Any]) -> None:
        """Merge ``body`` into an object; ClusterError when it does not exist."""
        await self._patch("merge", RESOURCES[ref.kind], ref, body, PatchType.MERGE)

    async def replace(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace an object as it was read; ConflictError when others wrote meanwhile."""
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
        REQUESTS.labels(verb, ref.kind).inc()
        try:
            return await request(*arguments, **options)
        except ApiError as error:
            raise _KINDS.get(error.status.code or 0, ClusterError)(f"{verb} {ref}: {error.status.message}") from error
        except httpx2.HTTPError as error:
            raise ClusterError(f"{verb} {ref}: the API server was not reached: {error!r}") from error


class _NotFoundError(ClusterError):
    """There is no such object."""


_KINDS: dict[int, type[ClusterError]] = {_NOT_FOUND: _NotFoundError, _CONFLICT: ConflictError}


def _namespace(ref: Reference) -> dict[str, str]:
    return {"namespace": ref.namespace} if ref.namespace else {}


def _plain(found: Any, kind: str) -> dict[str, Any]:
    plain: dict[str, Any] = found.to_dict()
    plain["kind"] = kind  # the items of a list come without
    return plain
