# SPDX-License-Identifier: BSD-2-Clause
"""Distinguishes a quiet cluster from a dead watch.

A watch whose connection has died silently looks like one without events. The versions of all objects are therefore
listed periodically, without the objects, and compared with what the watches have delivered. If a watch has not
delivered a listed version by the time of the next list, the object is read and given to the loop. This counts as lag,
which the liveness probe checks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.metrics.counted import WATCH_LAG
from shai_operator.reconcile.objects import WATCHED, reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.loop import Loop
    from shai_operator.reconcile.objects import Reference

_LOGGER = logging.getLogger(__name__)
_GONE = 0
"""Version of an object that is no longer in the list."""


class Freshness:
    """Compares watches with lists every ``period`` seconds."""

    def __init__(self, cluster: Cluster, loop: Loop, period: float) -> None:
        self._cluster = cluster
        self._loop = loop
        self._period = period
        self._lacking: dict[str, dict[Reference, int]] = {}
        """By kind: the versions in the last list that the watch had not delivered by then."""
        self._fed: dict[Reference, int] = {}
        """The versions that the loop got from lists."""
        self._since: dict[str, float] = {}

    def lag(self) -> tuple[float, str]:
        """Return the lag of the slowest watch, in seconds, and its kind."""
        now = time.monotonic()
        return max(((now - since, kind) for kind, since in self._since.items()), default=(0.0, ""))

    async def run(self) -> None:
        """Compare until cancelled. An API server that does not answer does not count as lag."""
        while True:
            await asyncio.sleep(self._period)
            for kind in WATCHED:
                try:
                    await self._compare(kind, await self._cluster.versions(kind))
                except ClusterError as error:
                    _LOGGER.info("cannot compare %s: %s", kind, error)

    async def _compare(self, kind: str, present: Mapping[Reference, int]) -> None:
        # The operator knows its own writes without a watch, so only versions that a watch delivered count.
        heard, before = self._loop.heard, self._lacking.get(kind, {})
        lacking = {ref: version for ref, version in present.items() if heard.get(ref, 0) < version}
        inventory = self._loop.inventory
        known = [*inventory.all(kind), *(inventory.forged() if kind == "PolicyRevision" else ())]
        gone = [obj for obj in known if reference(obj) not in present]
        behind = [ref for ref in lacking if heard.get(ref, 0) < before.get(ref, _GONE)]
        forgotten = [obj for obj in gone if before.get(reference(obj)) == _GONE]
        for obj in forgotten:
            self._fed.pop(reference(obj), None)
            self._loop.observe(obj, gone=True)
        self._lacking[kind] = lacking | dict.fromkeys(map(reference, gone), _GONE)
        self._note(kind, behind=bool(behind or forgotten))
        for ref in behind:
            await self._feed(ref, lacking[ref])

    async def _feed(self, ref: Reference, version: int) -> None:
        """Give the loop an object that its watch has not delivered."""
        if self._fed.get(ref, 0) >= version:
            return
        found = await self._cluster.get(ref)
        if found is not None:  # otherwise the next list says that it is gone
            self._fed[ref] = int(found["metadata"]["resourceVersion"])
            self._loop.take(found)

    def _note(self, kind: str, *, behind: bool) -> None:
        if behind:
            self._since.setdefault(kind, time.monotonic() - self._period)
            _LOGGER.warning("the watch of %s is behind the API server", kind)
        else:
            self._since.pop(kind, None)
        WATCH_LAG.labels(kind).set(time.monotonic() - self._since[kind] if kind in self._since else 0.0)
