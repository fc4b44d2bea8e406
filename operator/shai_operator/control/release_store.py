# SPDX-License-Identifier: BSD-2-Clause
"""Stored releases: immutable ConfigMaps in the operator's namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile import bundles
from shai_operator.reconcile.bundles import POOL_LABEL
from shai_operator.reconcile.objects import Reference, name, reference, uid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Object


class ReleaseStore:
    """Stores, reads and deletes releases."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._known: dict[str, Release] = {}

    async def named(self, wanted: Iterable[str]) -> dict[str, Release]:
        """Return the existing releases with these names; ReleaseError when one is damaged."""
        found = {}
        for release in wanted:
            if release not in self._known:
                stored = await self._cluster.get(Reference("ConfigMap", self._namespace, release))
                if stored is None:
                    continue
                self._known[release] = bundles.load(stored)
            found[release] = self._known[release]
        return found

    async def store(self, release: Release, pool: Object) -> None:
        """Store a release; its JailPool owns it. ReleaseError when it is too large."""
        await self._cluster.create(bundles.store(release, pool, self._namespace))
        self._known[release.name] = release

    async def forget(self, pool: str, keep: Collection[str]) -> None:
        """Delete the releases of a pool, except those in ``keep``."""
        for stored in await self._cluster.list("ConfigMap", self._namespace, {POOL_LABEL: pool}):
            if name(stored) not in keep:
                await self._cluster.delete(reference(stored), uid(stored))
                self._known.pop(name(stored), None)
