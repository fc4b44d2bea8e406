# SPDX-License-Identifier: BSD-2-Clause
"""Tells Prometheus what to scrape, and gives it a certificate for that: in a directory, or in a Secret."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.control.authority import RENEW_BEFORE
from shai_operator.control.backoff import Backoff
from shai_operator.control.scrape_directory import ScrapeDirectory
from shai_operator.control.settings import SettingsError
from shai_operator.metrics import targets
from shai_operator.providers import authority
from shai_operator.reconcile.objects import reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.settings import Settings
    from shai_operator.providers.authority import Identity
    from shai_operator.reconcile.objects import Inventory, Object

_LOGGER = logging.getLogger(__name__)
_LOOK_SECONDS = 2.0
_STANDBY_SECONDS = 60.0
_WRITER = "shai-operator"


class StandbyTargets:
    """The members' monitors, for a replica that does not lead and therefore watches no pools."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._listed: Sequence[Object] = ()
        self._ends = -math.inf
        self._lock = asyncio.Lock()

    async def members(self) -> Sequence[dict[str, Any]]:
        """Return the members' monitors, as they were a minute ago or later; ClusterError when nobody knows them."""
        async with self._lock:
            if time.monotonic() > self._ends:
                self._listed = await self._cluster.list("JailPool")
                self._ends = time.monotonic() + _STANDBY_SECONDS
        return targets.members(self._listed, self._name)


class Scraping:
    """Publishes targets and the certificate, until cancelled."""

    def __init__(self, settings: Settings, cluster: Cluster, inventory: Inventory, root: Identity) -> None:
        self._settings = settings
        self._cluster = cluster
        self._inventory = inventory
        self._root = root
        self._directory = ScrapeDirectory(settings.scrape) if settings.scrape else None
        self._client: Identity | None = None
        self._published: dict[str, Identity] = {}
        """The certificate that the directory has, and the one that the Secret has."""
        self._listed = False
        self._failed = ""

    @property
    def certificate_ends(self) -> float:
        """When the first published certificate expires, in seconds since 1970; NaN when there is none."""
        return min((client.ends.timestamp() for client in self._published.values()), default=math.nan)

    def members(self) -> Sequence[dict[str, Any]] | None:
        """Return the members' monitors; None as long as not all pools are known, which is no reason to forget them."""
        if not self._listed:
            return None
        return targets.members(self._inventory.all("JailPool"), self._settings.cluster)

    async def begin(self, port: int) -> None:
        """Publish what does not depend on pools; SettingsError or ClusterError when that is impossible."""
        if self._directory is not None:
            await asyncio.to_thread(self._directory.check)
            found = targets.operator(self._settings.probes[0], port, self._settings.cluster)
            await asyncio.to_thread(self._directory.write, "targets", "operator.json", _json(found))
        await self._write_certificate()
        await self._apply_secret()

    async def lead(self, port: int) -> None:
        """Do what `begin` does until it succeeds, then `run`."""
        backoff = Backoff()
        while True:
            try:
                await self.begin(port)
            except (SettingsError, OSError, ClusterError) as error:
                self._note(str(error))
                await backoff.wait()
            else:
                break
        await self.run()

    async def run(self) -> None:
        """Publish members and renewed certificates. Failures are logged, and what has failed is tried again."""
        while True:
            failed = []
            for publish in (self._list, self._write_members, self._write_certificate, self._apply_secret):
                try:
                    await publish()
                except (OSError, ClusterError) as error:
                    failed.append(str(error))
            self._note("; ".join(dict.fromkeys(failed)))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _list(self) -> None:
        """Find out whether the watches have delivered all pools that there are."""
        if not self._listed:
            there = await self._cluster.list("JailPool")
            self._listed = all(self._inventory.get(reference(pool)) is not None for pool in there)

    def _issued(self) -> Identity:
        """Return the certificate, a new one when it is due; it stays the same until then, whatever fails."""
        now = datetime.now(UTC)
        if self._client is None or now > self._client.ends - RENEW_BEFORE:
            self._client = authority.issue_client(self._root, "shai-metrics", now, role=authority.METRICS_ROLE)
        return self._client

    async def _write_members(self) -> None:
        found = self.members()
        if self._directory is not None and found is not None:
            await asyncio.to_thread(self._directory.write, "targets", "members.json", _json(found))

    async def _write_certificate(self) -> None:
        if self._directory is None:
            return
        client = self._issued()
        files = {"ca.pem": self._root.certificate, "client.key": client.key, "client.pem": client.certificate}
        for name, content in files.items():
            await asyncio.to_thread(self._directory.write, "tls", name, content.encode())
        self._published["directory"] = client

    async def _apply_secret(self) -> None:
        if not self._settings.scrape_secret:
            return
        client = self._issued()
        if client is not self._published.get("secret"):
            await self._cluster.apply(self._secret(client), _WRITER)
            self._published["secret"] = client

    def _secret(self, client: Identity) -> dict[str, Any]:
        content = {"ca.crt": self._root.certificate, "tls.crt": client.certificate, "tls.key": client.key}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._settings.scrape_secret, "namespace": self._settings.namespace},
            "type": "kubernetes.io/tls",
            "data": {name: base64.b64encode(text.encode()).decode() for name, text in content.items()},
        }

    def _note(self, failed: str) -> None:
        """Log a failure once, and its end."""
        if failed and failed != self._failed:
            _LOGGER.warning("Prometheus does not get what it needs for scraping: %s", failed)
        elif self._failed and not failed:
            _LOGGER.info("Prometheus gets what it needs for scraping again")
        self._failed = failed


def _json(found: Sequence[dict[str, Any]]) -> bytes:
    return (json.dumps(found, indent=2, sort_keys=True) + "\n").encode()
