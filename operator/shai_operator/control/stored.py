# SPDX-License-Identifier: BSD-2-Clause
"""What is stored beside an object that is to be admitted. Each replica reads it: only the leader watches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shai_operator.reconcile.objects import Inventory, Reference, namespace

if TYPE_CHECKING:
    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Object


class Stored:
    """Reads from the API server, for one request at a time: anybody may send requests for admission."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turn = asyncio.Lock()

    async def around(self, source: Object) -> Inventory:
        """Return a FactSource's namespace, what else is in it, and all pools; ClusterError without an answer."""
        found, space = Inventory(), namespace(source)
        async with self._turn:
            for kind, where in (("FactSource", space), ("Pipeline", space), ("JailPool", None)):
                for obj in await self._cluster.list(kind, where):
                    found.put(obj)
            # Its labels and its UID say which pools serve it.
            if (its := await self._cluster.get(Reference("Namespace", "", space))) is not None:
                found.put(its)
        return found
