# SPDX-License-Identifier: BSD-2-Clause
"""Tells Prometheus what to scrape, and gives it a certificate for that: in a directory, or in a Secret."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.control.authority import RENEW_BEFORE
from shai_operator.control.scrape_directory import ScrapeDirectory
from shai_operator.metrics import targets
from shai_operator.providers import authority
from shai_operator.reconcile.objects import reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.settings import Settings
    from shai_operator.providers.authority import Identity
    from shai_operator.reconcile.objects import Inventory

_LOGGER = logging.getLogger(__name__)
_LOOK_SECONDS = 2.0
_WRITER = "shai-operator"


class Scraping:
    """Publishes targets and the certificate, until cancelled."""

    def __init__(self, settings: Settings, cluster: Cluster, inventory: Inventory, root: Identity) -> None:
        self._settings = settings
        self._cluster = cluster
        self._inventory = inventory
        self._root = root
        self._directory = ScrapeDirectory(settings.scrape) if settings.scrape else None
        self._client: Identity | None = None
        self._listed = False
        self._failed = ""

    @property
    def certificate_ends(self) -> float:
        """When the certificate expires, in seconds since 1970; NaN when there is none."""
        return self._client.ends.timestamp() if self._client else math.nan

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
        await self._certify()

    async def run(self) -> None:
        """Publish members and renewed certificates. Failures are logged, and what has failed is tried again."""
        while True:
            try:
                await self._list()
                await self._certify()
                found = self.members()
                if self._directory is not None and found is not None:
                    await asyncio.to_thread(self._directory.write, "targets", "members.json", _json(found))
                self._note("")
            except (OSError, ClusterError) as error:
                self._note(str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _list(self) -> None:
        """Find out whether the watches have delivered all pools that there are."""
        if not self._listed:
            there = await self._cluster.list("JailPool")
            self._listed = all(self._inventory.get(reference(pool)) is not None for pool in there)

    async def _certify(self) -> None:
        """Issue a certificate when there is none, or when it is due, and hand it out."""
        if self._directory is None and not self._settings.scrape_secret:
            return
        now = datetime.now(UTC)
        due = self._client is None or now > self._client.ends - RENEW_BEFORE
        issue = authority.issue_client(self._root, "shai-metrics", now, role=authority.METRICS_ROLE) if due else None
        client = issue or self._client
        if client is None:
            return
        if self._directory is not None:
            files = {"ca.pem": self._root.certificate, "client.key": client.key, "client.pem": client.certificate}
            for name, content in files.items():
                await asyncio.to_thread(self._directory.write, "tls", name, content.encode())
        if self._settings.scrape_secret and issue is not None:
            await self._cluster.apply(self._secret(issue), _WRITER)
        self._client = client

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
